"""The table of products with constant matrices by what runs them and by what else could."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.products import products


def test_each_shape_and_number_of_threads_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert products.main(["--shapes", "5x70x40:gelu_erf,1x64x33", "--threads", "1,2", "--rounds", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [tuple(row[:2]) for row in cells] == [
        ("5x70x40 gelu_erf", "1"), ("5x70x40 gelu_erf", "2"), ("1x64x33", "1"), ("1x64x33", "2")
    ]  # fmt: skip
    assert all(first and other and first != other for _, _, first, _, other, _ in cells)
    for *_, rate, _, ratio in cells:
        assert re.fullmatch(r"\d+", rate) and re.fullmatch(r"\d+\.\d\d", ratio)


def test_a_wrong_product_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_MOST", 0.0)
    with pytest.raises(SystemExit, match="5x70x40: results are off by"):
        products.candidates(products.Shape(5, 70, 40))
