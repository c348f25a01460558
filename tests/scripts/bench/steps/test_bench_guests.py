"""The table of what the default target gives the host library."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import guests


def test_an_operator_is_timed_alone_and_between_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert guests.main(["--only", "floor", "--shapes", "1", "--rounds", "1", "--threads", "1"]) == 0
    *rows, _, last = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[3].strip() for row in rows] == ["alone", "between"]
    assert [row.split("|")[5].strip() for row in rows] == ["TVM", "host"]
    assert re.match(r"[01] of 1 slower", last)
