"""Layouts that a user gives by name, with a library that takes some of them only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from agreeable_backend import Agreeable, rules

from tvm_mxplan.core.description import Description
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.layout.overrides import forced_layouts
from tvm_mxplan.passes.layout.queries import StepQueries

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"


@dataclass(frozen=True)
class Picky(Agreeable):
    """Answers by the layouts of source and result: "" is fine, "ref" reference code, others are errors."""

    answers: dict[tuple[str, str], str]

    def describe(self, program: ir.Program) -> Description:
        described = super().describe(program)
        (step,) = program.steps
        tags = tuple(program.values[step.operand(role)].layout for role in ("src", "dst"))
        answer = self.answers.get(tags, "not here")
        if answer in ("", "ref"):
            named = "ref:any" if answer else "jit:any"
            info = replace(described.steps[0], implementation=named, is_reference=bool(answer))
        else:
            info = replace(described.steps[0], error=answer)
        return Description((info,), described.values)


def program() -> ir.Program:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (1, 3, 8, 8), "float32")
    weights = b.constant(np.zeros((16, 3, 1, 1), np.float32))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step("conv", attrs, (1, 16, 8, 8), [("src", x), ("weights", weights)])
    return b.finish()


def forced(name: str, answers: dict[tuple[str, str], str], step: str = "conv0") -> dict[str, tuple[str, ...]]:
    queries = StepQueries(Picky(answers))  # type: ignore[arg-type]
    return forced_layouts(program(), {step: name}, queries, rules)


@pytest.mark.parametrize(
    ("name", "answers", "expected"),
    [
        ("nhwc", {(LAST, LAST): ""}, (LAST, PLAIN, LAST)),
        ("acdb", {(LAST, LAST): "", (PLAIN, LAST): ""}, (LAST, PLAIN, LAST)),
        ("blocked", {(BLOCKED, BLOCKED): ""}, (BLOCKED, PLAIN, BLOCKED)),
        ("nChw16c", {(PLAIN, BLOCKED): ""}, (PLAIN, PLAIN, BLOCKED)),
        ("nChw16c", {(BLOCKED, BLOCKED): "ref", (PLAIN, BLOCKED): ""}, (PLAIN, PLAIN, BLOCKED)),
    ],
)
def test_a_layout_on_the_side_that_can(name, answers, expected) -> None:
    assert forced(name, answers) == {"conv0": expected}


def test_names_of_other_programs_are_ignored() -> None:
    assert forced("nhwc", {}, "conv7") == {}


def test_what_cannot_be_is_told_with_what_can() -> None:
    answers = {(LAST, LAST): "", (PLAIN, PLAIN): "", (BLOCKED, BLOCKED): "ref"}
    with pytest.raises(InvalidInputError) as error:
        forced("nChw16c", answers)
    assert str(error.value) == (
        "option layers: conv0 cannot run in nChw16c (reference code only, ref:any); "
        "the layouts it takes: nhwc, nchw"
    )
    with pytest.raises(InvalidInputError, match=r"\(not here\); the layouts it takes: no other$"):
        forced("nhwc", {})


def test_a_layout_of_another_rank_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="option layers: conv0: layout 'nwc' is of rank 3"):
        forced("nwc", {(LAST, LAST): ""})
