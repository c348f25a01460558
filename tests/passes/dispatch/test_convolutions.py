"""Algorithms of convolutions as candidates: costs in the best layout, what cannot be, weights from memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import tvm
from agreeable_backend import Agreeable, rules
from costs_by_hand import MODEL, rates
from region_passes import region_passes
from relax_programs import parse

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.dispatch import Candidate
from tvm_mxplan.core.description import Description, StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.dispatch import choose_algorithms as module
from tvm_mxplan.passes.dispatch.choose_algorithms import ColdCosts
from tvm_mxplan.passes.dispatch.convolutions import (
    ChosenAlgorithms,
    _choose,
    _reason,
    candidates_of,
    choose_algorithms,
)
from tvm_mxplan.passes.layout.queries import StepQueries

LAST, BLOCKED = "acdb", "aBcd16b"


def program(count: int = 1) -> ir.Program:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (1, 16, 8, 8), "float32")
    for _ in range(count):
        weights = b.constant(np.zeros((16, 16, 3, 3), np.float32))
        attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
        x = b.step("conv", attrs, (1, 16, 8, 8), [("src", x), ("weights", weights)])
    b.step("relu", ir.Eltwise("relu", 0.0, 0.0), (1, 16, 8, 8), [("src", x)])
    return b.finish()


@dataclass(frozen=True)
class Library(Agreeable):
    """Has what ``answers`` gives an implementation; what begins with a minus sign is an error."""

    answers: dict

    def describe(self, program: ir.Program) -> Description:
        (step,) = program.steps
        described = super().describe(program)
        name, error = self.answers.get(step.attrs.algorithm, ("-convolution : none of it", 0.0))
        failed = name.startswith("-")
        info = StepInfo("" if failed else name, 0, 0, name[1:] if failed else "", error)
        info = replace(info, is_reference=name.startswith("ref:"))
        return Description((info,), described.values)


class Costs:
    """By algorithm and layout of the result."""

    measured = True
    machine = rates()

    def __init__(self, table: dict) -> None:
        self.table = table

    def __call__(self, _program, step, layouts, _info) -> float:
        return self.table[step.attrs.algorithm].get(layouts[-1], 999.0)

    def knows(self, _program, step, _layouts) -> bool:
        return step.attrs.algorithm == "direct"


ALL = {"direct": ("jit", 0.0), "winograd_f2": ("f2", 1e-6), "winograd_f4": ("f4", 2e-6)}
TABLE = {
    "direct": {LAST: 100.004, BLOCKED: 120.0},
    "winograd_f2": {LAST: 70.0, BLOCKED: 60.0},
    "winograd_f4": {LAST: 40.0, BLOCKED: 50.0},
}


def candidates(answers: dict) -> dict[str, tuple]:
    one = program()
    queries = StepQueries(Library(answers))  # type: ignore[arg-type]
    found = candidates_of(one, one.steps[0], queries, Costs(TABLE), rules)  # type: ignore[arg-type]
    return {c.algorithm: (c.implementation, c.cost_us, c.relative_error, c.source, c.out) for c in found}


def test_every_algorithm_costs_what_it_costs_in_its_best_layout() -> None:
    assert candidates(ALL) == {
        "direct": ("jit", 100.0, 0.0, "measured", ""),
        "winograd_f2": ("f2", 60.0, 1e-6, "model", ""),
        "winograd_f4": ("f4", 40.0, 2e-6, "model", ""),
    }


def test_what_cannot_be_is_out_with_its_reason() -> None:
    found = candidates({"direct": ("jit", 0.0), "winograd_f4": ("ref:any", 2e-6)})
    assert found["winograd_f2"] == ("", None, 0.0, "", "none of it")
    assert found["winograd_f4"][1:] == (None, 0.0, "", "the library has nothing but reference code")


def chosen(max_error: float, rule: str = "cost", count: int = 1) -> list[str]:
    after = choice(max_error, rule, count).program
    return [step.attrs.algorithm for step in after.steps[:-1]]  # type: ignore[union-attr]


def choice(max_error: float, rule: str, count: int) -> ChosenAlgorithms:
    one = program(count)
    queries = StepQueries(Library(ALL))  # type: ignore[arg-type]
    options = {"rule": rule, "max_error": max_error, "margin": 0.8}
    after = choose_algorithms(one, queries, Costs(TABLE), rules, **options)  # type: ignore[arg-type]
    assert after.program.steps[-1] == one.steps[-1]
    return after


@pytest.mark.parametrize(
    ("max_error", "count", "expected"),
    [
        (1e-4, 1, ["winograd_f4"]),
        (1e-6, 1, ["winograd_f2"]),
        (1e-7, 1, ["direct"]),
        (4e-6, 2, ["winograd_f4"] * 2),
        (3e-6, 2, ["winograd_f4", "winograd_f2"]),
        (2e-6, 2, ["winograd_f2"] * 2),
    ],
)
def test_errors_of_all_steps_stay_below_the_limit(max_error: float, count: int, expected: list[str]) -> None:
    assert chosen(max_error, count=count) == expected


def test_the_others_are_told_by_step() -> None:
    assert chosen(1e-4, "winograd_f2", 2) == ["winograd_f2"] * 2
    weighed = choice(1e-4, "winograd_f2", 2).weighed
    assert {name: [one.algorithm for one in others] for name, others in weighed.items()} == {
        "conv0": ["direct", "winograd_f4"],
        "conv1": ["direct", "winograd_f4"],
    }


def test_weights_are_read_from_memory_when_a_model_runs() -> None:
    """A timer finds them in caches: 4 MB take 100 us at the model's 40 GB/s."""
    one = program()
    layouts = (LAST, "abcd", LAST)
    for nbytes, expected in ((0, 40.0), (1_600_000, 40.0), (4_000_000, 100.0)):
        costs = ColdCosts(Costs({"direct": {LAST: 40.0}}))  # type: ignore[arg-type]
        assert costs(one, one.steps[0], layouts, StepInfo("jit", 0, nbytes, "")) == pytest.approx(expected)
    assert costs.measured and not ColdCosts(MODEL).measured
    assert costs.knows(one, one.steps[0], layouts) and not ColdCosts(MODEL).knows(one, one.steps[0], layouts)


def test_regions_share_the_limit_evenly_and_margins_go_by_where_costs_are_from(monkeypatch) -> None:
    asked: list[tuple[float, float]] = []
    rules: list[object] = []

    def choose(program: ir.Program, *_arguments: object, **options: float) -> ChosenAlgorithms:
        asked.append((options["max_error"], options["margin"]))
        rules.append(options["rule"])
        return ChosenAlgorithms(program, {})

    monkeypatch.setattr(module, "choose_algorithms", choose)
    conv = "R.nn.conv2d({0}, w, padding=[1, 1, 1, 1])"
    first, second, third = (conv.format(source) for source in "xbd")
    lines = f"a = {first}\nb = R.floor(a)\nc = R.exp({second})\nd = R.floor(c)\nreturn R.tanh({third})"
    parameters = 'x: R.Tensor((1, 8, 6, 6), "float32"), w: R.Tensor((8, 8, 3, 3), "float32")'
    backend = OneDNN()
    passes = region_passes(backend)
    mod = tvm.transform.Sequential(passes)(parse(lines, parameters))
    module.ChooseAlgorithms(backend, max_relative_error=6e-5)(mod)
    assert asked == [(pytest.approx(2e-5), 0.8)] * 3
    asked.clear()
    module.ChooseAlgorithms(backend, max_relative_error=6e-5, cost=Costs({}))(mod)  # type: ignore[arg-type]
    assert [margin for _, margin in asked] == [0.97] * 3
    asked.clear()
    module.ChooseAlgorithms(backend, rule="direct")(mod)
    assert asked == []
    assert set(rules) == {"cost"}
    module.ChooseAlgorithms(backend, rule="winograd_f2")(mod)
    assert rules[-3:] == ["winograd_f2"] * 3


DIRECT = Candidate("onednn", "jit", algorithm="direct", cost_us=100.0)
F2 = Candidate("onednn", "f2", algorithm="winograd_f2", cost_us=60.0, relative_error=1e-6)
F4 = Candidate("onednn", "f4", algorithm="winograd_f4", cost_us=40.0, relative_error=2e-6)


@pytest.mark.parametrize(
    ("rule", "option", "taken", "margin", "left", "reason"),
    [
        ("cost", DIRECT, F4, 0.8, 0.0, "winograd_f4 costs less"),
        ("winograd_f4", DIRECT, F4, 0.8, 0.0, "option convolutions=winograd_f4"),
        ("winograd_f4", F2, F4, 0.8, 0.0, "option convolutions=winograd_f4"),
        ("winograd_f2", F2, DIRECT, 0.8, 5e-7, "over max_relative_error: adds 1e-06 where 5e-07 is left"),
        (
            "winograd_f2",
            replace(F2, cost_us=200.0),
            DIRECT,
            0.8,
            5e-7,
            "over max_relative_error: adds 1e-06 where 5e-07 is left",
        ),
        ("cost", F2, F4, 0.8, 1.0, "costs more than winograd_f4"),
        ("cost", F4, F2, 0.8, 1.5e-6, "over max_relative_error: adds 2e-06 where 1.5e-06 is left"),
        ("cost", F4, F2, 0.8, -1e-9, "over max_relative_error: adds 2e-06 where 0 is left"),
        ("cost", F2, DIRECT, 0.6, 1.0, "costs less than direct, but not below 0.6 of it, as it has to"),
        ("cost", F2, F4, 0.5, 1.0, "costs more than winograd_f4"),
        ("cost", replace(F2, cost_us=100.0), DIRECT, 0.8, 1.0, "costs more than direct"),
        ("cost", replace(F2, cost_us=40.0), F4, 0.8, 1.0, "costs more than winograd_f4"),
    ],
)
def test_why_an_algorithm_is_not_taken(rule, option, taken, margin, left, reason) -> None:
    assert _reason(option, taken, [DIRECT, option, taken], rule, margin, left) == reason


@pytest.mark.parametrize(
    ("margin", "max_error", "expected"),
    [
        (0.8, 1.0, "winograd_f4"),
        (0.8, 2e-6, "winograd_f4"),
        (0.8, 1.9e-6, "winograd_f2"),
        (0.6, 1.9e-6, "direct"),  # 60 us are not below 0.6 of 100
        (0.4, 1.0, "direct"),
    ],
)
def test_the_largest_gain_within_the_limit_is_taken(margin: float, max_error: float, expected: str) -> None:
    assert _choose({0: [DIRECT, F2, F4]}, "cost", max_error, margin)[0].algorithm == expected
    reversed_ = _choose({0: [F4, F2, DIRECT]}, "cost", max_error, margin)[0]
    assert reversed_.algorithm == expected


def test_without_a_direct_one_any_other_that_is_wanted_is_taken() -> None:
    out = replace(DIRECT, out="reference code")
    assert _choose({0: [out, F2]}, "cost", 1.0, 0.8) == {0: F2}
    assert _choose({0: [out, replace(F2, out="none")]}, "cost", 1.0, 0.8) == {}
    assert _choose({0: [DIRECT, F2, F4]}, "winograd_f2", 1.0, 0.1) == {0: F2}
