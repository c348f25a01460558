"""Types of several regions within one bound of errors, with costs given by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from agreeable_backend import rules
from costed_programs import COSTS, SHORT, WIDE, Costs, Library, Small, pair

from tvm_mxplan.core.assignment import AssignmentProblem
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.precision import decide_types
from tvm_mxplan.passes.precision.choose_types import TypeChoice, TypeChooser
from tvm_mxplan.passes.precision.constants import Constants
from tvm_mxplan.passes.precision.decide_types import OpenRegion, TypeDecider, _Posed
from tvm_mxplan.passes.precision.rounding import rounding, rounding_of
from tvm_mxplan.passes.precision.split_pairs import split_pairs
from tvm_mxplan.passes.precision.step_types import StepTypes
from tvm_mxplan.passes.precision.wishes import Names, PrecisionWish

ONE = math.sqrt(rounding(SHORT))
"""The error that one rounding of a value is stated to make."""


class Takes(Library):
    """A library with the rules that programs here want."""

    def layout_rules(self, step: ir.Step):
        return rules(step)


class Timed(Costs):
    """By kind, type and width of the result."""

    machine = default_rates()

    def __call__(self, program, step, layouts, info) -> float:
        width = program.values[step.dst].shape[-1] / 9
        return super().__call__(program, step, layouts, info) * width


class Random(Small):
    def matmul(self, src: int) -> int:
        weights = self.constant(np.random.default_rng(len(self.steps)).standard_normal((9, 9), "float32"))
        return self.step("matmul", ir.MatMul(), (4, 9), [("src", src), ("weights", weights)])


def region(products: int) -> OpenRegion:
    """Products, and a function between each two of them."""
    b = Random()
    value = b.matmul(b.x)
    for _ in range(products - 1):
        value = b.matmul(b.exp(value))
    return OpenRegion(b.done(value), Names({}, ()), Constants(b.constants, SHORT))


def decided(wish: PrecisionWish, *regions: OpenRegion, spent: float = 0.0) -> list[TypeChoice]:
    decider = TypeDecider(Takes({}), wish, SHORT, Timed(COSTS), spent)  # type: ignore[arg-type]
    return [choice for _, choice in decider.decide(regions)]


def in_short(choices: list[TypeChoice]) -> int:
    return sum(types.read == SHORT for choice in choices for types in choice.types)


def test_what_is_taken_stays_within_the_bound_and_grows_with_it() -> None:
    counts, costs = [], []
    for bound in (0.0, ONE, 1.9 * ONE, 3 * ONE, 4 * ONE, 10 * ONE):
        choices = decided(PrecisionWish("auto", {}, bound), region(3), region(2))
        assert sum(choice.spent for choice in choices) <= bound**2
        counts.append(in_short(choices))
        costs.append(sum(choice.cost_us for choice in choices))
    assert counts == sorted(counts) and costs == sorted(costs, reverse=True)
    assert counts[0] == 0 and counts[-1] == 8
    assert counts[1] == 0, "a product rounds its source and its filters"
    assert 0 < counts[3] < 8


@pytest.mark.slow
@pytest.mark.parametrize("off", [0.0, 0.5])
def test_a_looser_bound_never_costs_more(off: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where searches end somewhere within their budget, which alone would go up and down."""
    exact, random = decide_types.solve_within, np.random.default_rng(0)
    ends: dict[float, float] = {}

    def ends_early(problems, budget):
        share = ends.setdefault(budget, float(random.uniform(1.0 - off, 1.0)))
        return exact(problems, budget if math.isinf(budget) else share * budget)

    monkeypatch.setattr(decide_types, "solve_within", ends_early)
    bounds, costs = np.geomspace(ONE, 9 * ONE, 30), []
    for bound in bounds:
        choices = decided(PrecisionWish("auto", {}, bound), region(6), region(5))
        assert sum(choice.spent for choice in choices) <= bound**2
        costs.append(sum(choice.cost_us for choice in choices))
    assert costs == sorted(costs, reverse=True) and len(set(costs)) > 4
    shares = [bound**2 * ends.setdefault(bound, float(random.uniform(1.0 - off, 1.0))) for bound in bounds]
    assert (shares == sorted(shares)) == (off == 0.0)


def test_without_a_bound_everything_that_gains_is_taken_and_what_it_adds_is_known() -> None:
    one = region(2)
    free = decided(PrecisionWish("bf16"), one)
    enough = decided(PrecisionWish("auto", {}, 1.0), one)
    assert free == enough
    filters = sum(rounding_of(array, SHORT) for array in one.constants._arrays)
    assert [types.written for types in free[0].types] == [SHORT, SHORT, WIDE]
    assert free[0].spent == pytest.approx(3 * ONE**2 + filters), "the input, and two results"


def test_a_residual_stays_in_float32_where_that_costs_as_little() -> None:
    """One reader is a product, which wants it short; a cast, or a short result, costs the same."""
    b = Random()
    stream = b.exp(b.matmul(b.x))
    inside = b.matmul(stream)
    joined = b.step("add", ir.Binary("add"), (4, 9), [("src", stream), ("src1", inside)])
    region = OpenRegion(b.done(joined), Names({}, ()), Constants(b.constants, SHORT))
    free = {("matmul", WIDE): 20.0, ("matmul", SHORT): 10.0} | {
        (kind, dtype): 50.0 for kind in ("eltwise", "binary") for dtype in (WIDE, SHORT)
    }

    class Cheap(Timed):
        def __call__(self, program, step, layouts, info) -> float:
            return 0.01 if step.kind == "reorder" else super().__call__(program, step, layouts, info)

    decider = TypeDecider(Takes({}), PrecisionWish("bf16"), SHORT, Cheap(free))  # type: ignore[arg-type]
    ((program, choice),) = decider.decide([region])
    types = {step.kind: types for step, types in zip(program.steps, choice.types, strict=True)}
    assert types["matmul"].read == SHORT
    assert types["eltwise"].written == types["binary"].read == WIDE


def test_what_does_not_fit_says_so() -> None:
    (choice,) = decided(PrecisionWish("auto", {}, 0.5 * ONE), region(1))
    assert choice.kept == {"matmul0": "max_relative_error does not reach for it"}
    (choice,) = decided(PrecisionWish("auto", {"eltwise": "f32"}, 1.0), region(2))
    assert choice.kept == {"exp0": "option precision_for"}


def test_other_regions_errors_count() -> None:
    bound = PrecisionWish("auto", {}, 5 * ONE)
    assert in_short(decided(bound, region(2))) == 3
    assert in_short(decided(bound, region(2), spent=(4.9 * ONE) ** 2)) == 0
    assert in_short(decided(bound, region(2), spent=(6 * ONE) ** 2)) == 0


def test_demands_beyond_the_bound_are_one_line() -> None:
    wish = PrecisionWish("auto", {"matmul0": "bf16"}, ONE / 2)
    with pytest.raises(InvalidInputError, match=r"precision_for: what it asks for adds .*e-03"):
        decided(wish, region(1))
    (choice,) = decided(PrecisionWish("auto", {"matmul0": "bf16"}, 2 * ONE), region(1))
    assert choice.types[0].read == SHORT


def image_region() -> OpenRegion:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (1, 9, 8, 8), WIDE)
    w = b.constant(np.full((9, 9, 3, 3), 0.3, "float32"))
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    y = b.step("conv2d", attrs, (1, 9, 8, 8), [("src", x), ("weights", w)])
    b.write_output(y, b.port("output", "y", (1, 9, 8, 8), WIDE))
    return OpenRegion(b.finish(), Names({}, ()), Constants(b.constants, SHORT))


class Convolving(Costs):
    """A convolution costs less in the shorter type than directly, and least by Winograd's algorithm."""

    machine = default_rates()

    def __call__(self, program, step, layouts, info) -> float:
        if isinstance(step.attrs, ir.Convolution) and step.attrs.algorithm != "direct":
            return 4.0
        return super().__call__(program, step, layouts, info)

    modelled = __call__


@pytest.mark.parametrize(("rule", "expected"), [("cost", WIDE), ("direct", SHORT), ("winograd_f2", WIDE)])
def test_float32_is_weighed_with_the_algorithms_that_it_may_have(rule, expected) -> None:
    costs = Convolving({("convolution", WIDE): 20.0, ("convolution", SHORT): 9.0})
    wish = PrecisionWish("auto", {}, 1.0, rule)
    decider = TypeDecider(Takes({}), wish, SHORT, costs)  # type: ignore[arg-type]
    ((_, choice),) = decider.decide([image_region()])
    assert choice.types[0].read == expected
    assert choice.float32_us == (20.0 if rule == "direct" else 4.0)


def test_what_algorithms_may_err_is_left_to_them() -> None:
    class Erring(Takes):
        def describe(self, program):
            found = super().describe(program)
            attrs = program.steps[0].attrs
            if isinstance(attrs, ir.Convolution) and attrs.algorithm != "direct":
                return replace(found, steps=(replace(found.steps[0], relative_error=2.0 * ONE),))
            return found

    costs = Convolving({("convolution", WIDE): 20.0, ("convolution", SHORT): 1.0})
    for bound, expected in ((3.0 * ONE, WIDE), (6.0 * ONE, SHORT)):
        wish = PrecisionWish("auto", {}, bound, "cost")
        decider = TypeDecider(Erring({}), wish, SHORT, costs)  # type: ignore[arg-type]
        ((_, choice),) = decider.decide([image_region()])
        assert choice.types[0].read == expected


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [("float32", "float32", False), ("bfloat16", "float32", True), ("float32", "bfloat16", True)],
)
def test_a_pair_is_one_step_again_where_both_stay_in_float32(monkeypatch, first, second, apart) -> None:
    asked: list[list[str]] = []

    def choose(self: TypeDecider, posed: _Posed, budget: float) -> list[TypeChoice]:
        (program,) = posed.programs
        asked.append([step.name for step in program.steps])
        types = {"c": first, "c.depthwise": second}
        chosen = tuple(StepTypes(types.get(step.name, WIDE), WIDE) for step in program.steps)
        return [TypeChoice(chosen, {}, 1.0, 2.0)]

    monkeypatch.setattr(TypeDecider, "_choose", choose)
    monkeypatch.setattr(TypeChooser, "problem", lambda self: AssignmentProblem((), {}))
    whole = pair((), ())
    decider = TypeDecider(Takes({}), PrecisionWish("bf16"), SHORT, Timed(COSTS))  # type: ignore[arg-type]
    constants = Constants([np.ones(3, "float32")] * 4, SHORT)
    ((program, choice),) = decider.decide([OpenRegion(whole, Names({}, ()), constants)])
    assert program == (split_pairs(whole) if apart else whole)
    assert len(choice.types) == len(program.steps)
    assert asked == [["c", "c.depthwise", "last"], ["c", "last"]][: 1 if apart else 2]
