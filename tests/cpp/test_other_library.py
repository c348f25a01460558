"""Runs ``other_library``: regions of a library that is not oneDNN, in a runtime without oneDNN."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.mark.slow
def test_regions_need_no_onednn(without_onednn: Path) -> None:
    answer = subprocess.run([without_onednn / "other_library"], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout == "all checks hold\n"
