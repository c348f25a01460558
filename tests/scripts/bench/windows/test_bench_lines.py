"""The table of depthwise convolutions of lines in each layout."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.windows import lines


def test_each_line_has_times_of_results_that_agreed(capsys: pytest.CaptureFixture[str]) -> None:
    """Filters of 31 have no kernel in blocks."""
    assert lines.main(["--lines", "2x32x15:4,1x16x60:31", "--rounds", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["2x32x15:4", "1x16x60:31"]
    assert all(
        re.fullmatch(r"\| \S+ \| \d+ \| \d+ \| (\d+|-) \| \d+\.\d{3} \| (\d+\.\d{3}|-) \|", row)
        for row in rows
    )
