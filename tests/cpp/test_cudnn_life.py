"""Runs ``cudnn_life``: regions on a GPU against a stand-in for CUDA and cuDNN, which notes every call."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
from sanitized import PROGRAMS, build


@pytest.mark.slow
def test_the_life_of_a_region_on_a_gpu(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    stand_in = tmp_path / "libstand_in.so"
    source = PROGRAMS / "recording_cuda.cc"
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(stand_in)], check=True)
    (program,) = build(tmp_path, ["cudnn_life"], sanitizers="", with_onednn=False)
    answer = subprocess.run([program, stand_in], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout == "all checks hold\n"
