"""Runs ``fuzz_bytes`` and ``fuzz_programs``, built with sanitizers, on programs of every kind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "fuzz"))
from seeds import containers

INPUTS = {"fuzz_bytes": 8_000, "fuzz_programs": 6_000}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["fuzz_bytes", "fuzz_programs"])
def test_damaged_and_changed_programs(program: str, address_sanitized: Path, tmp_path: Path) -> None:
    files = []
    for i, data in enumerate(containers()):
        files.append(tmp_path / f"seed{i}")
        files[-1].write_bytes(data)
    command = [address_sanitized / program, f"{INPUTS[program]}x", "1", *files]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    said = re.match(r"(\d+) inputs: .* (\d+) (run|still sound)", answer.stdout)
    assert said and int(said[1]) == INPUTS[program] and int(said[2]) > 0, answer.stdout
