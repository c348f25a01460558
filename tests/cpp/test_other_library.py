"""Runs ``other_library``: regions of a library that is not oneDNN, in a runtime without oneDNN."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
from sanitized import build


@pytest.mark.slow
def test_regions_need_no_onednn(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    (program,) = build(tmp_path, ["other_library"], sanitizers="", with_onednn=False)
    answer = subprocess.run([program], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout == "all checks hold\n"
