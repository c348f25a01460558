"""scripts/bench calls: its table, and that a wrong answer is no time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")
SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.whole import calls  # noqa: E402

FEW = ["--widths", "5-3", "--batches", "1,2", "--rounds", "3", "--calls", "4"]


def test_the_table_has_a_row_for_each_network_and_batch(capsys: pytest.CaptureFixture[str]) -> None:
    assert calls.main(FEW) == 0
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2
    for row, batch in zip(rows, ("1", "2"), strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[:2] == ["5-3", batch] and len(cells) == header.count("|") - 1
        assert all(float(cell) > 0 for cell in cells[2:])


def test_an_answer_that_differs_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calls, "worst_relative_l2", lambda *_: 2e-4)
    assert calls.main([*FEW[:2], "--batches", "1", "--rounds", "1", "--calls", "1"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_ratios_are_of_the_same_round() -> None:
    times = {
        "run": [1.0, 2.0, 9.0],
        "their run": [2.0, 2.0, 3.0],
        "bound": [1.0],
        "their bound": [4.0],
        "tensors": [3.0],
        "function": [5.0],
    }
    assert calls._cells(times) == ["2.00", "2.00", "1.00", "1.00", "4.00", "0.25", "3.00", "5.00"]
