"""Offers of a library for a step: reference code, errors, costs and the words of reports for each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agreeable_backend import rules
from costs_by_hand import MODEL

from tvm_mxplan.core.description import Description, Refused, StepInfo, ValueInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.layout.offers import Offer, Offers, why_not
from tvm_mxplan.passes.layout.queries import StepQueries

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
IMAGE = (1, 17, 6, 5)
POOL = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))


class Library:
    """Runs a step by the code that ``codes`` has for its result's layout; errors begin with ``!``."""

    def __init__(self, **codes: str) -> None:
        self.codes = codes

    def describe(self, program: ir.Program) -> Description:
        (step,) = program.steps
        code = self.codes.get(program.values[step.dst].layout, "fast")
        error = f"{step.kind} {step.name}: {code[1:]}" if code[0] == "!" else ""
        refused = (Refused("wrong", "it is"),)
        slow = "ref:any" in code
        info = StepInfo("" if error else code, 96, 0, error, 2e-6, refused=refused, is_reference=slow)
        return Description((info,), tuple(ValueInfo(value.layout, 0) for value in program.values))


class Costs:
    """A step costs 10 us on plain images, else 7.125; copying 100; one layout is measured."""

    measured = False

    def __call__(self, _program, step, layouts, _info) -> float:
        return 10.0 if layouts[-1] == PLAIN else 7.125

    def knows(self, _program, _step, layouts) -> bool:
        return layouts[-1] == LAST

    def reorder(self, *_question) -> float:
        return 1.0

    def copies(self, _program, _step, _layouts) -> float:
        return 100.0


def pool() -> ir.Program:
    b = ProgramBuilder("p")
    b.step("pool", POOL, IMAGE, [("src", b.port("input", "x", IMAGE, "float32"))])
    return b.finish()


def offers(program: ir.Program, **codes: str) -> Offers:
    return Offers(program, StepQueries(Library(**codes)), Costs(), rules)  # type: ignore[arg-type]


def test_every_candidate_that_can_be_made_is_offered() -> None:
    program = pool()
    usable, out = offers(program).usable(program.steps[0])
    assert [(offer.layouts, offer.cost) for offer in usable] == [
        ((LAST, LAST), 7.125),
        ((BLOCKED, BLOCKED), 7.125),
        ((PLAIN, PLAIN), 10.0),
    ]
    assert out == []


def test_what_cannot_be_made_is_out_and_says_why() -> None:
    program = pool()
    usable, out = offers(program, **{LAST: "!no such code"}).usable(program.steps[0])
    assert [offer.layouts[0] for offer in usable] == [BLOCKED, PLAIN]
    (one,) = out
    assert (one.layouts, one.out, one.cost_us, one.source) == ((LAST, LAST), "no such code", None, "")


def test_reference_code_is_offered_where_there_is_nothing_else() -> None:
    program = pool()
    usable, out = offers(program, **{LAST: "ref:any", PLAIN: "jit+ref:any"}).usable(program.steps[0])
    assert [offer.layouts[0] for offer in usable] == [BLOCKED]
    reason = "reference code, refused where there is other code"
    assert [(one.layouts[0], one.out, one.cost_us) for one in out] == [
        (LAST, reason, 7.12),
        (PLAIN, reason, 10.0),
    ]
    slow = dict.fromkeys((PLAIN, LAST), "ref:any") | {BLOCKED: "!none"}
    usable, out = offers(program, **slow).usable(program.steps[0])
    assert [offer.layouts[0] for offer in usable] == [LAST, PLAIN]
    assert [one.out for one in out] == ["none"]


def test_nothing_may_be_left() -> None:
    program = pool()
    usable, out = offers(program, **dict.fromkeys((PLAIN, LAST, BLOCKED), "!none")).usable(program.steps[0])
    assert (usable, len(out)) == ([], 3)


def test_forced_layouts_are_the_only_ones() -> None:
    program = pool()
    usable, out = offers(program, **{BLOCKED: "ref"}).usable(program.steps[0], (PLAIN, BLOCKED))
    assert ([offer.layouts for offer in usable], out) == ([(PLAIN, BLOCKED)], [])


def test_a_step_as_it_is_may_be_reference_code() -> None:
    program = pool()
    offer = offers(program, **{LAST: "ref"}).as_it_is(program.steps[0], (LAST, LAST))
    assert (offer.step, offer.layouts, offer.cost) == (program.steps[0], (LAST, LAST), 7.125)
    assert offer.info.implementation == "ref"


def test_what_reports_say_of_an_offer() -> None:
    program = pool()
    found = offers(program)
    (last, _, plain) = found.usable(program.steps[0])[0]
    told = found.candidate(last, "because")
    assert (told.implementation, told.layouts, told.cost_us, told.source) == (
        "fast",
        (LAST, LAST),
        7.12,
        "measured",
    )
    assert (told.relative_error, told.scratchpad_bytes, told.algorithm) == (2e-6, 96, "")
    assert (told.refused, told.out) == ((Refused("wrong", "it is"),), "because")
    assert found.candidate(plain, "").source == "model"
    unknown = replace(last, info=replace(last.info, scratchpad_bytes=-1))
    assert found.candidate(unknown, "").scratchpad_bytes == 0


def convolution() -> ir.Program:
    b = ProgramBuilder("p")
    x, weights = b.port("input", "x", IMAGE, "float32"), b.port("input", "w", (17, 17, 1, 1), "float32")
    bias = b.port("input", "b", (17,), "float32")
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step("conv", attrs, IMAGE, [("src", x), ("weights", weights), ("bias", bias)])
    return b.finish()


def test_layouts_are_told_of_sources_and_the_result() -> None:
    program = convolution()
    found = offers(program)
    offer = found.as_it_is(program.steps[0], (LAST, "any", "a", BLOCKED))
    told = found.candidate(offer, "")
    assert (told.layouts, told.algorithm) == ((LAST, BLOCKED), "direct")


@pytest.mark.parametrize("viewed", [True, False])
def test_slices_and_concatenations_cost_what_is_copied(viewed: bool) -> None:
    """Whole images are views; columns are copied."""
    b = ProgramBuilder("p")
    whole = b.step("pool", POOL, (4, 16, 6, 6), [("src", b.port("input", "x", (4, 16, 6, 6), "float32"))])
    begin, shape = ((1, 0, 0, 0), (2, 16, 6, 6)) if viewed else ((0, 0, 0, 1), (4, 16, 6, 2))
    part = b.step("part", ir.Slice(begin), shape, [("src", whole)])
    pieces = [b.step("pool", POOL, shape, [("src", part)]) for _ in range(2)]
    axis = 0 if viewed else 3
    joined = tuple(2 * extent if at == axis else extent for at, extent in enumerate(shape))
    b.step("join", ir.Concat(axis), joined, [("src", piece) for piece in pieces])
    program = b.finish()
    found = offers(program)
    slices, concat = program.steps[1], program.steps[-1]
    expected = 0.0 if viewed else 100.0
    assert found.as_it_is(slices, (PLAIN, PLAIN)).cost == expected
    assert found.as_it_is(concat, (PLAIN, PLAIN, PLAIN)).cost == expected


def test_why_an_offer_is_not_taken() -> None:
    def offer(cost: float) -> Offer:
        return Offer(pool().steps[0], (PLAIN, PLAIN), cost, StepInfo("fast", 0, 0, ""))

    taken = offer(10.0)
    assert why_not(taken, taken, "so") == ""
    assert why_not(offer(10.0), taken, "so") == "costs as much"
    assert why_not(offer(10.04), taken, "so") == "costs as much"
    assert why_not(offer(12.3), taken, "so") == "costs 2.3 us more"
    assert why_not(offer(8.0), taken, "so") == "costs 2.0 us less alone, but so"


def test_the_model_measures_nothing() -> None:
    program = pool()
    found = Offers(program, StepQueries(Library()), MODEL, rules)  # type: ignore[arg-type]
    (first, *_), _ = found.usable(program.steps[0])
    assert found.candidate(first, "").source == "model"
    assert first.cost > 0
