"""Candidates of copies, casts and gradients: what is a copy, what is a cast, and which of them is no work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn.layout_rules import layout_rules
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.layout.candidates import (
    candidates,
    in_layout,
    is_cast,
    is_copy,
    is_stored_alike,
    options_of,
    uniform,
)

RULES = layout_rules(16)
PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
SHAPE = (2, 32, 6, 5)


def moved(
    attrs: ir.Attributes | None = None,
    dtype: str = "float32",
    shape: tuple[int, ...] = SHAPE,
    layouts: tuple[str, str] = (PLAIN, LAST),
    **result: object,
) -> tuple[ir.Program, ir.Step]:
    """A step from a float32 input to a local of ``dtype``."""
    dst = ir.Value("y", shape, dtype, "local", layouts[1])
    values = (ir.Value("x", shape, "float32", "input", layouts[0], 0), replace(dst, **result))  # type: ignore[arg-type]
    step = ir.Step("step", attrs or ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    return ir.Program("p", values, (step,)), step


def test_a_conversion_into_another_type_is_a_cast() -> None:
    assert [is_cast(*moved()), is_copy(*moved())] == [False, True]
    assert [is_cast(*moved(dtype="bfloat16")), is_copy(*moved(dtype="bfloat16"))] == [True, False]
    whole = moved(ir.Quantization(0), "int8")
    assert [is_cast(*whole), is_copy(*whole)] == [True, False]
    assert is_cast(*moved(ir.Quantization(0))), "whatever its types are"
    for other in (ir.Eltwise("relu", 0.0, 0.0), ir.Slice((0, 0, 0, 0))):
        assert not is_cast(*moved(other, "bfloat16")) and not is_copy(*moved(other))


@pytest.mark.parametrize(
    ("shape", "layouts", "alike"),
    [
        (SHAPE, (PLAIN, PLAIN), True),
        (SHAPE, (PLAIN, LAST), False),
        ((2, 32, 1, 1), (PLAIN, LAST), True),
        ((2, 1, 6, 5), (PLAIN, LAST), True),
        ((2, 16, 6, 5), (BLOCKED, LAST), True),
        ((2, 32, 6, 5), (BLOCKED, LAST), False),
    ],
)
def test_a_copy_of_the_same_bytes_is_no_work(
    shape: tuple[int, ...], layouts: tuple[str, str], alike: bool
) -> None:
    program, step = moved(shape=shape, layouts=layouts)
    assert is_stored_alike(program, step, layouts) == alike


@pytest.mark.parametrize("changed", [{"kind": "output", "index": 0}, {"alias_of": 0}, {"dtype": "bfloat16"}])
def test_what_somebody_else_sees_is_copied(changed: dict[str, object]) -> None:
    """And what becomes another type is converted."""
    program, step = moved(layouts=(PLAIN, PLAIN), **changed)
    assert not is_stored_alike(program, step, (PLAIN, PLAIN))
    program, step = moved(layouts=(PLAIN, PLAIN))
    behind = replace(step, post_ops=(ir.EltwisePostOp("relu", 0.0, 0.0),))
    assert is_stored_alike(program, step, (PLAIN, PLAIN)) and not is_stored_alike(
        program, behind, (PLAIN, PLAIN)
    )


def test_copies_of_images_stand_alike_or_as_they_are() -> None:
    program, step = moved()
    found = candidates(program, step, BLOCKED, "cost", RULES)
    assert found == [(PLAIN, LAST), (BLOCKED, BLOCKED), (LAST, LAST), (PLAIN, PLAIN)]
    # By cost each begins where its source stands, not where some step would have it.
    assert options_of(program, step, RULES) == [
        (PLAIN, LAST),
        (PLAIN, PLAIN),
        (LAST, LAST),
        (BLOCKED, BLOCKED),
    ]
    program, step = moved(shape=(4, 5), layouts=("ab", "ba"))
    assert candidates(program, step, "ab", "cost", RULES) == [("ab", "ba"), ("ab", "ab")]
    program, step = moved(shape=(1, 2, 3, 4, 5, 6), layouts=("abcdef", "abcdfe"))
    assert candidates(program, step, "abcdef", "cost", RULES)[1:] == [("abcdef", "abcdef")]


@pytest.mark.parametrize(("rank", "several"), [(2, False), (3, True), (5, True), (6, False)])
def test_casts_of_images_have_a_layout_on_either_side(rank: int, several: bool) -> None:
    plain = "abcdef"[:rank]
    program, step = moved(dtype="bfloat16", shape=(2, 32, 3, 4, 5, 6)[:rank], layouts=(plain, plain))
    found = candidates(program, step, plain, "cost", RULES)
    assert (len(found) > 1) == several and (plain, plain) in found
    without = replace(RULES, casts=False)
    assert candidates(program, step, plain, "cost", without) == [(plain, plain)]


def test_numbers_of_a_conversion_stay_as_they_are() -> None:
    program, step = moved(ir.Quantization(1), "int8")
    row = ir.Value("scale", (32,), "float32", "constant", "a", 0)
    program = replace(program, values=(*program.values, row))
    operands = (step.operands[0], ir.Operand("dst_scale", 2), step.operands[1])
    step = replace(step, operands=operands)
    for source, _, target in (found := candidates(program, step, LAST, "cost", RULES)):
        assert {source, target} <= {PLAIN, LAST, BLOCKED}
    assert {layouts[1] for layouts in found} == {"a"} and (PLAIN, "a", BLOCKED) in found


def gradient() -> tuple[ir.Program, ir.Step]:
    b = ProgramBuilder("p")
    x, grad = b.port("input", "x", (2, 16, 9, 9), "float32"), b.port("input", "g", (2, 32, 7, 7), "float32")
    attrs = ir.ConvolutionBackwardWeights((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step("gradient", attrs, (32, 16, 3, 3), [("src", x), ("gradient", grad)])
    program = b.finish()
    return program, program.steps[0]


def test_gradients_of_filters_are_written_plain_from_images_in_one_layout() -> None:
    program, step = gradient()
    assert in_layout(program, step, LAST) == (LAST, LAST, PLAIN)
    found = candidates(program, step, BLOCKED, "channels_last", RULES)
    assert found == [(LAST, LAST, PLAIN), (BLOCKED, BLOCKED, PLAIN), (PLAIN, PLAIN, PLAIN)]
    assert candidates(program, step, LAST, "cost", LayoutRules())[-1] == (PLAIN, PLAIN, PLAIN)


def test_recurrent_weights_and_smaller_operands_stand_as_they_are() -> None:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (3, 2, 5), "float32")
    weights = [
        b.constant(np.zeros((1, 1, 5, 4, 7), "float32")),
        b.constant(np.zeros((1, 1, 7, 4, 7), "float32")),
    ]
    attrs = ir.Recurrent("lstm", "forward")
    b.step("lstm", attrs, (3, 2, 7), [("src", x), ("weights", weights[0]), ("recurrence", weights[1])])
    program = b.finish().with_value(1, layout="abdec").with_value(2, layout="abdec")
    found = candidates(program, program.steps[0], "acb", "cost", RULES)
    assert found == [("abc", "abdec", "abdec", "abc")]
    program = program.with_value(0, layout="bac")
    assert candidates(program, program.steps[0], "bac", "cost", RULES)[1] == ("abc", "abdec", "abdec", "abc")


@pytest.mark.parametrize("at", [0, 1])
def test_the_source_is_known_by_its_role(at: int) -> None:
    """Wherever it stands among the operands."""
    b = ProgramBuilder("p")
    x = b.port("input", "x", (2, 3, 6, 5), "float32")
    weights = b.constant(np.zeros((16, 3, 1, 1), np.float32))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    operands = [("src", x), ("weights", weights)]
    b.step("conv", attrs, (2, 16, 6, 5), operands[::-1] if at else operands)
    program = b.finish()
    step = program.steps[0]
    mixed = [PLAIN, PLAIN, BLOCKED]
    assert tuple(mixed) in options_of(program, step, RULES)
    assert uniform(program, step, LAST)[at] == LAST
