"""scripts/bench sizes: networks at names and at numbers, and a table that a wrong answer fails."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.inputs import sizes as networks  # noqa: E402
from _bench.whole import sizes  # noqa: E402

from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2  # noqa: E402

SMALL = {"tiny": (2, 19, 35), networks.ENCODER: (2, 5)}


@pytest.mark.parametrize("network", SMALL)
def test_names_and_numbers_are_the_same_network(network: str) -> None:
    onnx.checker.check_model(networks.network_at(network, networks.names_of(network)), full_check=True)
    inputs = networks.inputs_at(network, SMALL[network])
    named, static = (
        onnxruntime_outputs(networks.network_at(network, dims), inputs)
        for dims in (networks.names_of(network), SMALL[network])
    )
    assert worst_relative_l2(named, static) < 1e-6
    assert np.ptp(named[0]) > 0


@pytest.mark.slow
def test_a_row_for_each_size_and_one_for_the_random_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sizes, "_RANGES", {"batch": (1, 2), "height": (16, 40), "width": (16, 40)})
    few = ["--networks", "tiny", "--sizes", "1x19x35", "--rounds", "2", "--random", "2"]
    assert sizes.main(few) == 0
    rows = [[cell.strip() for cell in row.split("|")] for row in capsys.readouterr().out.splitlines()[2:]]
    assert [row[1:3] for row in rows] == [["tiny", "1x19x35"], ["tiny", "2 random"]]
    assert float(rows[0][5]) > 0 and float(rows[0][8]) < 1e-4 and float(rows[1][8]) < 1e-4


def test_a_wrong_answer_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sizes, "_row", lambda *_: (["0"] * 6, 2e-4))
    assert sizes.main(["--networks", "tiny", "--sizes", "1x19x35"]) == 1
    assert "1x19x35" in capsys.readouterr().out
