"""The model of costs held against what steps take: families, medians by time, and no step left out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from costs_by_hand import rates

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import costs
from _bench.steps.costs import Sample
from _bench.steps.profile import time_steps

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.testing import zoo


def test_every_step_has_a_family_and_a_cost() -> None:
    model = zoo.load("squeezenet")
    executable = tvm_mxplan.compile(model, options={"layouts": "blocked"})
    timed = time_steps(executable, zoo.random_inputs(model), calls=1)
    families = {costs.family_of(step) for step in timed if step.step.implementation}
    assert "convolution jit_1x1:avx512_core, blocked" in families or "avx512" not in str(families)
    assert any(family.startswith("reorder") for family in families)
    modelled = [
        costs.modelled(step, OneDNN(), rates(200.0, 40.0)) for step in timed if step.step.implementation
    ]
    assert all(cost > 0 for cost in modelled)
    twice = [costs.modelled(step, OneDNN(), rates(400.0, 80.0)) for step in timed if step.step.implementation]
    assert np.less_equal(twice, modelled).all() and sum(twice) < 0.7 * sum(modelled)


def test_rows_count_steps_by_their_time() -> None:
    slow = [Sample(90, 30), Sample(12, 12), Sample(3, 3)]
    long, short = costs.rows({"short": [Sample(1, 10), Sample(1, 1)], "long": slow})
    assert long == "| long | 3 | 98.1% | 3.00 | 1.00 | 3.00 |"
    assert short.split(" | ")[:3] == ["| short", "2", "1.9%"]


def test_the_command_prints_two_tables(capsys) -> None:
    assert costs.main(["--models", "tiny", "--batch", "1", "--calls", "1", "--machine", "default"]) == 0
    table = capsys.readouterr().out
    assert "Rates: default: 220 GFLOP/s float32 avx512" in table
    assert "| tiny | 1 | " in table and "| convolution " in table
