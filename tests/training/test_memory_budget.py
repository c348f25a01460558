"""Steps within a budget of memory: the same bits, a smaller arena, and what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_network import batch, model

import tvm_mxplan
from tvm_mxplan import training
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.report.report import Report

OPTIONS = {"machine": "default", "cache": "disabled"}


def compiled(budget: float | None, target: str = "dnnl, llvm", **settings: Any) -> training.TrainingStep:
    options = {**OPTIONS, "memory_budget": budget}
    sgd = training.SGD(0.1, momentum=0.9)
    return training.compile(model(), "softmax_cross_entropy", sgd, target=target, options=options, **settings)


def height(step: training.TrainingStep) -> int:
    return step.report.memory[-1].height


@pytest.mark.slow
def test_a_smaller_arena_and_the_same_weights() -> None:
    whole, small = compiled(None), compiled(0.8)
    assert whole.report.recomputation is None
    told = small.report.recomputation
    assert told is not None and sum(told.operators.values()) > 0
    assert height(small) <= told.budget == int(0.8 * height(whole))
    assert (told.before, told.after) == (height(whole), height(small))
    assert told.chosen_us >= told.least_us > 0
    for seed in range(3):
        assert small(*batch(seed)) == pytest.approx(whole(*batch(seed)), rel=1e-6)
    ours, theirs = small.state_dict(), whole.state_dict()
    for row in ("model", "slots"):
        flat = theirs[row] if row == "model" else theirs[row]["momentum"]
        found = ours[row] if row == "model" else ours[row]["momentum"]
        for name, array in flat.items():
            assert np.allclose(found[name], array, rtol=1e-5, atol=1e-6), name


@pytest.mark.slow
def test_operators_run_twice_in_a_library_as_well() -> None:
    whole, small = compiled(None), compiled(0.8)
    steps = [sum(len(region.steps) for region in step.report.regions) for step in (whole, small)]
    assert steps[1] > steps[0]
    assert small.report.estimated_us > whole.report.estimated_us


@pytest.mark.slow
def test_a_budget_that_is_met_anyway_changes_nothing() -> None:
    whole = compiled(None)
    same = compiled(height(whole))
    assert same.report.recomputation is None and height(same) == height(whole)


@pytest.mark.slow
def test_gradients_that_are_added_up_keep_to_the_budget() -> None:
    small = compiled(0.85, accumulate=2)
    told = small.report.recomputation
    assert told is not None and height(small) <= told.budget


@pytest.mark.slow
def test_what_cannot_be_met_is_told_with_the_least_bytes() -> None:
    with pytest.raises(InvalidInputError, match="the smallest arena that was found"):
        compiled(1000)


@pytest.mark.slow
def test_tvm_alone_has_no_arena() -> None:
    with pytest.raises(InvalidInputError, match="no arena"):
        compiled(0.8, "llvm")


@pytest.mark.parametrize("budget", [0, -5, 1.5, 0.0, "much", True])
def test_a_budget_that_is_none(budget: object) -> None:
    with pytest.raises(InvalidInputError, match="option memory_budget"):
        tvm_mxplan.Options(memory_budget=budget)  # type: ignore[arg-type]


def test_other_functions_have_no_budget() -> None:
    with pytest.raises(InvalidInputError, match="of steps of training"):
        tvm_mxplan.compile(model(), options={**OPTIONS, "memory_budget": 0.5})


@pytest.mark.slow
def test_the_report_tells_it_and_comes_back() -> None:
    report = compiled(0.8).report
    assert "operators run again" in str(report) and "estimated time times" in str(report)
    assert Report.from_json(report.to_json()).recomputation == report.recomputation
