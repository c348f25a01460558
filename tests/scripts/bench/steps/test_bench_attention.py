"""The table of attention against its parts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import attention


def test_a_problem_has_a_row_whose_results_agreed(capsys: pytest.CaptureFixture[str]) -> None:
    assert attention.main(["--problems", "short;decoding", "--rounds", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["decoding", "short"]
    assert all(re.fullmatch(r"\| \w+ \| \d+ \| \d+ \| \d+\.\d\d \|", row) for row in rows)
