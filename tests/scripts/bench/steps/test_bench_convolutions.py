"""The benchmark of convolutions: a row for each layer, with the algorithm that the compiler chose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.steps import convolutions  # noqa: E402

from tvm_mxplan.core.program import program as ir  # noqa: E402


@pytest.mark.slow
def test_a_row_for_each_layer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolutions, "WEIGHTS_BYTES", 1 << 20)
    assert convolutions.main(["--models", "squeezenet", "--rounds", "3"]) == 0
    text = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
    rows = [row for row in rows if row[0] == "squeezenet"]
    assert {row[2] for row in rows} >= {"16 to 64, 55x55", "32 to 128, 27x27", "64 to 256, 13x13"}
    for row in rows:
        direct, f2, f4 = (float(number) for number in row[3:6])
        assert direct > 0 and f2 > 0 and f4 > 0
        chosen, best, ratio = row[6:]
        assert {chosen, best} <= set(ir.CONVOLUTION_ALGORITHMS)
        assert float(ratio) >= 1 and (chosen != best or float(ratio) == 1)
    near = sum(float(row[-1]) <= 1.03 for row in rows)
    assert abs(int(text.splitlines()[-1].split()[0]) - near) <= 1, "ratios in rows are rounded"
    assert f" of {len(rows)} choices " in text


@pytest.mark.slow
def test_groups_and_filters_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolutions, "WEIGHTS_BYTES", 1 << 20)
    layers = convolutions.layers_of("bvlc_alexnet", 1)
    assert [str(layer) for layer in layers] == [
        "96 to 256, 26x26, 5x5 filters, 2 groups",
        "256 to 384, 12x12",
        "384 to 384, 12x12, 2 groups",
        "384 to 256, 12x12, 2 groups",
    ]
    second, *_, last = layers
    assert set(convolutions.time_algorithms(second, 1)) == {"direct", "winograd_f2"}
    assert set(convolutions.time_algorithms(last, 1)) == set(ir.CONVOLUTION_ALGORITHMS)


def test_the_worst_choices_are_named() -> None:
    lost = {"a": 1.0, "b": 1.03, "c": 1.4, "d": 1.1}
    assert convolutions.summary(lost) == (
        "2 of 4 choices are within 3 % of the best; the worst: c (1.40); d (1.10); b (1.03)."
    )
