"""Runs tests of a module again in a process whose oneDNN is told to use a narrower instruction set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_again(module: str, isa: str, selected: str) -> None:
    """Fail unless tests of a file that ``selected`` (pytest's ``-k``) picks pass, at least one of them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selected, module]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(module).parent)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout, done.stdout
