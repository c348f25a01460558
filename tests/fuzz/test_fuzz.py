"""A short run of what ``scripts/fuzz`` runs for long: nothing is found, and inputs of both kinds are made."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
import run


@pytest.mark.parametrize("target", run.PYTHON)
def test_readers_in_python(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which would not survive a finding of the worst kind."""
    monkeypatch.chdir(tmp_path)
    assert run.main(["0", "--inputs", "80", "--seed", "7", "--one", target]) == 0, capsys.readouterr().err
    said = re.fullmatch(r"(\d+) inputs: (\d+) refused, (\d+) taken\n", capsys.readouterr().out)
    assert said
    assert min(int(said[2]), int(said[3])) > 0


def test_a_finding_is_told_and_is_the_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a compiled program that always finds something."""
    (tmp_path / "fuzz_bytes").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    (tmp_path / "fuzz_bytes").chmod(0o755)
    assert run.main(["0", "--seed", "7", "--targets", "bytes", "--build", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "bytes: FOUND by input ? of seed 7 (status 1)" in said
    assert "broken" in said
