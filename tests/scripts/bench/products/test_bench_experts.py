"""The table of rows by the matrix of their group beside other ways."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.products import experts


def test_each_size_and_number_of_rows_has_a_row_whose_results_agreed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert experts.main(["--sizes", "3x32x40,9x17x5", "--rows", "1,20", "--rounds", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [tuple(cell.strip() for cell in row.split("|")[1:3]) for row in rows] == [
        ("3x32x40", "1"), ("3x32x40", "20"), ("9x17x5", "1"), ("9x17x5", "20")
    ]  # fmt: skip
    assert all(re.fullmatch(r"\| \S+ \| \d+ (\| \d+ ){3}(\| \d+\.\d\d\d ){2}\|", row) for row in rows)
