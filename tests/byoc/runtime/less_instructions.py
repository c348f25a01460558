"""Runs tests of a module again in a process whose oneDNN is told to use a narrower instruction set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_AGAIN = "MXPLAN_TESTS_AGAIN"
"""Set in such a process: a test that selects itself would start one after the other."""


def run_again(module: str, isa: str, selected: str) -> None:
    """Fail unless tests of a file that ``selected`` (pytest's ``-k``) picks pass, at least one of them."""
    assert _AGAIN not in os.environ, f"{selected!r} picks the test that runs it again"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selected, module]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa, _AGAIN: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(module).parent)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout, done.stdout
