"""``ChooseAlgorithms``: the decision on plain data, and what comes of it in whole models."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import onnx
import pytest

import tvm_mxplan
from tvm_mxplan.core.decisions.dispatch import Candidate
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.options import Options
from tvm_mxplan.passes.dispatch.convolutions import decide
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

DIRECT = Candidate(algorithm="direct", cost_us=100.0)
F2 = Candidate(algorithm="winograd_f2", cost_us=60.0, relative_error=1e-6)
F4 = Candidate(algorithm="winograd_f4", cost_us=40.0, relative_error=2e-6)


def chosen_by(candidates: dict[int, list[Candidate]], *rules: object) -> dict[int, str]:
    """The algorithm of each step; exactly one of its candidates is not out."""
    decided = decide(candidates, *rules)  # type: ignore[arg-type]
    assert all(len(options) == len(candidates[number]) for number, options in decided.items())
    kept = {number: [one.algorithm for one in options if not one.out] for number, options in decided.items()}
    return {number: algorithm for number, (algorithm,) in kept.items()}


@pytest.mark.parametrize(
    "candidates, rule, max_error, chosen",
    [
        ([DIRECT, F2, F4], "cost", 1e-4, "winograd_f4"),
        ([DIRECT, F2, replace(F4, cost_us=70.0)], "cost", 1e-4, "winograd_f2"),
        ([DIRECT, replace(F2, cost_us=81.0), replace(F4, cost_us=99.0)], "cost", 1e-4, "direct"),
        ([DIRECT], "cost", 1e-4, "direct"),
        ([DIRECT, F2, F4], "cost", 1.5e-6, "winograd_f2"),
        ([DIRECT, F2, F4], "cost", 0.5e-6, "direct"),
        ([DIRECT, F2, F4], "winograd_f2", 1e-4, "winograd_f2"),
        ([DIRECT, replace(F4, cost_us=900.0)], "winograd_f4", 1e-4, "winograd_f4"),
        ([DIRECT, F2], "winograd_f4", 1e-4, "direct"),
        ([DIRECT, F4], "winograd_f4", 0.0, "direct"),
        ([DIRECT, F2, F4], "direct", 1e-4, "direct"),
    ],
)
def test_one_step(candidates, rule, max_error, chosen):
    assert chosen_by({0: candidates}, rule, max_error, 0.8) == {0: chosen}


def test_errors_add_up_and_what_gains_most_together_is_taken():
    """The largest gain and F2 three times gain 720 us; F4 in place of two of these gains 700."""
    large = [replace(DIRECT, cost_us=1000.0), replace(F4, cost_us=400.0)]
    small = [DIRECT, F2, F4]
    chosen = chosen_by({0: small, 1: large, 2: small, 3: small}, "cost", 5e-6, 0.8)
    assert chosen == {0: "winograd_f2", 1: "winograd_f4", 2: "winograd_f2", 3: "winograd_f2"}


@pytest.mark.parametrize("seed", range(8))
def test_a_larger_limit_never_gains_less(seed):
    """One that takes what gains most, and fills what is left with what fits, gains less now and then."""
    random = np.random.default_rng(seed)
    steps = {}
    for number in range(12):
        direct, error = float(random.uniform(50, 900)), float(random.uniform(1e-7, 3e-6))
        f2 = replace(F2, cost_us=direct * float(random.uniform(0.5, 1.0)), relative_error=error)
        f4 = replace(
            F4,
            cost_us=direct * float(random.uniform(0.3, 1.0)),
            relative_error=error * float(random.uniform(1, 4)),
        )
        steps[number] = [replace(DIRECT, cost_us=direct), f2, f4]

    def cost_at(limit):
        chosen = chosen_by(steps, "cost", limit, 0.9)
        options = [next(one for one in steps[at] if one.algorithm == name) for at, name in chosen.items()]
        assert sum(option.relative_error for option in options) <= limit
        return sum(option.cost_us for option in options)

    limits = np.geomspace(1e-7, 6e-5, 120)
    costs = [cost_at(limit) for limit in limits]
    assert costs == sorted(costs, reverse=True) and len(set(costs)) > 15
    least = sum(
        min([own[0].cost_us, *(one.cost_us for one in own[1:] if one.cost_us < 0.9 * own[0].cost_us)])
        for own in steps.values()
    )
    assert costs[-1] == pytest.approx(least)


@pytest.mark.parametrize("seed", range(4))
def test_what_fits_is_near_the_most_that_can_be_gained(seed):
    random = np.random.default_rng(seed)
    steps = {
        number: [
            DIRECT,
            replace(F2, cost_us=float(random.uniform(40, 79)), relative_error=1e-6),
            replace(F4, cost_us=float(random.uniform(20, 79)), relative_error=2.5e-6),
        ]
        for number in range(5)
    }
    for limit in (1.2e-6, 3e-6, 5e-6, 8e-6):
        chosen = chosen_by(steps, "cost", limit, 0.8)
        options = [next(one for one in steps[at] if one.algorithm == name) for at, name in chosen.items()]
        gained = sum(100.0 - option.cost_us for option in options)
        most = max(
            sum(100.0 - option.cost_us for option in some)
            for some in itertools.product(*steps.values())
            if math.fsum(option.relative_error for option in some) <= limit
        )
        assert 0.5 * most <= gained <= most


@pytest.mark.parametrize(
    "candidates, rule, max_error, reasons",
    [
        ([DIRECT, F2, F4], "cost", 1e-4, ["winograd_f4 costs less", "costs more than winograd_f4", ""]),
        (
            [DIRECT, F2, F4],
            "cost",
            1.5e-6,
            ["winograd_f2 costs less", "", "over max_relative_error: adds 2e-06 where 5e-07 is left"],
        ),
        (
            [DIRECT, replace(F2, cost_us=90.0), replace(F4, cost_us=110.0)],
            "cost",
            1e-4,
            ["", "costs less than direct, but not below 0.8 of it, as it has to", "costs more than direct"],
        ),
        (
            [DIRECT, F2, F4],
            "winograd_f2",
            1e-4,
            ["option convolutions=winograd_f2", "", "option convolutions=winograd_f2"],
        ),
        (
            [DIRECT, F4],
            "winograd_f4",
            0.0,
            ["", "over max_relative_error: adds 2e-06 where 0 is left"],
        ),
        ([DIRECT, replace(F2, cost_us=None, out="five by five")], "cost", 1e-4, ["", "five by five"]),
    ],
)
def test_the_others_are_out_for_a_reason(candidates, rule, max_error, reasons):
    (decided,) = decide({0: candidates}, rule, max_error, 0.8).values()
    assert [one.out for one in decided] == reasons


def test_without_any_that_is_possible_all_are_out():
    impossible = replace(DIRECT, cost_us=None, out="no such thing")
    assert decide({0: [impossible], 1: [impossible, F4]}, "cost", 0.0, 0.8) == {
        0: [impossible],
        1: [impossible, replace(F4, out="over max_relative_error: adds 2e-06 where 0 is left")],
    }


# --- whole models ------------------------------------------------------------------------------------------


def implementations(executable: tvm_mxplan.Executable) -> list[str]:
    return [
        step.implementation
        for region in executable.report.regions
        for step in region.steps
        if step.kind == "convolution"
    ]


@pytest.fixture(scope="module")
def resnet18() -> onnx.ModelProto:
    return zoo.load("resnet18")


@pytest.mark.slow
def test_resnet18_uses_winograd_and_keeps_its_numbers(resnet18):
    executable = tvm_mxplan.compile(resnet18)
    chosen = implementations(executable)
    assert chosen.count("winograd_f4") >= 7  # 64 and 128 channels
    # The first one is 7x7, three are 1x1 and three have strides.
    direct = [name for name in chosen if not name.startswith("winograd")]
    assert len(chosen) == 20 and chosen[0] in direct and 7 <= len(direct) <= 13
    assert all(name.startswith(("jit", "brgconv")) for name in direct), direct
    inputs = zoo.random_inputs(resnet18)
    outputs = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(outputs, onnxruntime_outputs(resnet18, inputs)) < 1e-5


@pytest.mark.slow
def test_alexnet_uses_winograd_in_groups_and_for_5x5():
    """The second to the fifth convolution; the first is 11x11 with stride 4."""
    model = zoo.load("bvlc_alexnet")
    executable = tvm_mxplan.compile(model)
    first, second, *rest = implementations(executable)
    assert "winograd" not in first
    assert second == "winograd_f2"
    assert len(rest) == 3 and all(name in ("winograd_f2", "winograd_f4") for name in rest)
    inputs = zoo.random_inputs(model)
    outputs = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(outputs, onnxruntime_outputs(model, inputs)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["winograd_f2", "winograd_f4"])
@pytest.mark.parametrize("layouts", ["cost", "blocked", "naive"])
def test_one_algorithm_for_all(resnet18, rule, layouts):
    executable = tvm_mxplan.compile(resnet18, options={"convolutions": rule, "layouts": layouts})
    assert implementations(executable).count(rule) == 13  # every 3x3 of stride 1
    inputs = zoo.random_inputs(resnet18)
    outputs = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(outputs, onnxruntime_outputs(resnet18, inputs)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"convolutions": "direct"}, {"max_relative_error": 0}, {"layouts": "plain"}]
)
def test_no_winograd(resnet18, options):
    assert not any(
        "winograd" in name for name in implementations(tvm_mxplan.compile(resnet18, options=options))
    )


@pytest.mark.slow
def test_the_limit_on_errors_holds_for_the_sum(resnet18):
    counts = []
    for limit in (1e-7, 1e-6, 1e-4):
        names = implementations(tvm_mxplan.compile(resnet18, options={"max_relative_error": limit}))
        counts.append(sum("winograd" in name for name in names))
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.slow
def test_measured_choice(resnet18, tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path))
    options = {"tune": "measure", "tune_seconds": 20.0}
    executable = tvm_mxplan.compile(resnet18, options=options)
    assert "winograd_f4" in implementations(executable)


@pytest.mark.slow
def test_symbolic_batch(resnet18):
    model = zoo.load("resnet18", batch="n")
    executable = tvm_mxplan.compile(model)
    assert "winograd_f4" in implementations(executable)
    for batch in (1, 3):
        inputs = zoo.random_inputs(model, batch=batch)
        outputs = [tensor.numpy() for tensor in executable(**inputs)]
        assert worst_relative_l2(outputs, onnxruntime_outputs(model, inputs)) < 1e-5


@pytest.mark.slow
def test_exported_and_loaded(resnet18, tmp_path):
    executable = tvm_mxplan.compile(resnet18)
    executable.export(tmp_path / "model.so")
    inputs = zoo.random_inputs(resnet18)
    ours, loaded = (e(**inputs)[0].numpy() for e in (executable, tvm_mxplan.load(tmp_path / "model.so")))
    assert np.array_equal(ours, loaded)


# --- options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "field, value, expected",
    [
        ("convolutions", "fft", "one of cost, direct, winograd_f2, winograd_f4"),
        ("max_relative_error", -1e-9, "a number of at least 0"),
        ("max_relative_error", "small", "a number of at least 0"),
        ("max_relative_error", True, "a number of at least 0"),
    ],
)
def test_bad_options(field, value, expected):
    with pytest.raises(InvalidInputError, match=f"option {field}=.*; expected {expected}"):
        Options.of({field: value})
