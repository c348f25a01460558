"""Runs ``cudnn_life``: regions on a GPU against a stand-in for CUDA and cuDNN, which notes every call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
from sanitized import PROGRAMS


@pytest.mark.slow
def test_the_life_of_regions_on_a_gpu(without_onednn: Path, tmp_path: Path) -> None:
    stand_in = tmp_path / "libstand_in.so"
    source = PROGRAMS / "recording_cuda.cc"
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(stand_in)], check=True)
    for program in ("cudnn_life", "cudnn_movement", "cudnn_graphs"):
        answer = subprocess.run([without_onednn / program, stand_in], capture_output=True, text=True)
        assert answer.returncode == 0, f"{program}: {answer.stdout}{answer.stderr}"
        assert answer.stdout == "all checks hold\n"
