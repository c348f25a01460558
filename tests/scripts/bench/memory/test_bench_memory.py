"""The memory benchmark: its table says what the plans say."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.memory import memory  # noqa: E402


def rows_of(text: str) -> list[list[str]]:
    """The cells of the table's rows, without its head."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return lines[2:]


@pytest.mark.slow
@pytest.mark.alone
def test_plans_of_networks_are_proven_in_a_part_of_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Equal to the lower bound, never above what TVM takes for the module without regions."""
    models = ["resnet50", "inception_v3", "mobilenet_v2", "shufflenet"]
    start = time.perf_counter()
    assert memory.main(["--models", ",".join(models), "--batch", "1,8"]) == 0
    whole = time.perf_counter() - start
    rows = rows_of(capsys.readouterr().out)
    assert len(rows) == 2 * 2 * len(models)
    assert sum(float(row[9]) for row in rows) < 0.1 * whole
    for model, batch, plan, bound, ours, ratio, tensors, tvm, no_reuse, _, status in rows:
        where = f"{model}, batch {batch}, {plan}"
        assert (ratio, status) == ("1.000", "lower_bound"), where
        assert float(tensors) <= float(bound) == float(ours) <= float(tvm) < float(no_reuse), where


@pytest.mark.slow
def test_the_order_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    """ShuffleNet needs less in another order."""
    heights = []
    for order in ("keep", "memory"):
        assert memory.main(["--models", "shufflenet", "--batch", "1", "--order", order]) == 0
        (_, regions) = rows_of(capsys.readouterr().out)
        assert regions[5] == "1.000"
        heights.append(float(regions[4]))
    assert heights[1] < heights[0]


def test_a_row_for_each_kind_of_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main(["--models", "tiny", "--batch", "2"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if "tiny" in line]
    assert [row[:3] for row in rows] == [["tiny", "2", "relax"], ["tiny", "2", "regions"]]
    for row in rows:
        bound, ours, _, tensors, tvm, no_reuse = row[3:9]
        assert 0 < float(tensors) <= float(bound) <= float(ours) < float(no_reuse)
        assert tvm == "-" or float(tensors) <= float(tvm)  # TVM's figure has no scratchpads
        assert row[2] == "regions" or float(ours) <= float(tvm)
