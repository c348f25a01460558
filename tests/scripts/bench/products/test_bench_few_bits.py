"""The table of products with weights of few bits beside others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.products import few_bits


def test_each_size_and_number_of_rows_has_a_row_whose_results_agreed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert few_bits.main(["--sizes", "64x48,96x32", "--rows", "1,5", "--rounds", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [tuple(cell.strip() for cell in row.split("|")[1:3]) for row in rows] == [
        ("64x48", "1"), ("64x48", "5"), ("96x32", "1"), ("96x32", "5")
    ]  # fmt: skip
    assert all(re.fullmatch(r"\| \S+ \| \d+ (\| \d+ ){4}(\| \d+\.\d\d ){3}\|", row) for row in rows)
