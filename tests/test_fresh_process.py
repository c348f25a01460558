"""A library runs as planned in a process that did not compile it.

oneDNN keeps the primitives a process has asked for and answers like questions with them, so only a process
that loads a library shows which implementations it gets there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tvm_mxplan
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo

LOAD = """
import json, sys
import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.report.inspection import decoded_programs
programs = decoded_programs(tvm_mxplan.load(sys.argv[1]).module)
print(json.dumps([[step.implementation for step in library.describe(program).steps] for program in programs]))
"""


@pytest.mark.parametrize("name", ["densenet121", "bvlc_alexnet", "resnet18", "shufflenet"])
def test_the_implementations_are_those_planned(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    executable = tvm_mxplan.compile(zoo.load(name))
    executable.export(path)
    answer = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True
    ).stdout
    (program,) = decoded_programs(executable.module)
    (loaded,) = json.loads(answer)
    assert len(loaded) == len(program.steps) > 8
    assert loaded == [step.implementation for step in program.steps]
