"""The facts that a step's cost depends on: shapes, layouts and bytes by role, as they are stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of, reorder_facts

IMAGE, PADDED = (2, 17, 5, 7), (2, 32, 5, 7)
VALUES = (
    ir.Value("x", IMAGE, "float32", "input", "abcd", 0),
    ir.Value("w", (3, 17, 1, 1), "bfloat16", "constant", "abcd", 0),
    ir.Value("view", (3, 17, 1, 1), "bfloat16", "local", "abcd", alias_of=1),
    ir.Value("y", (2, 3, 5, 7), "float32", "local", "abcd"),
    ir.Value("other", (2, 3, 5, 7), "float32", "input", "abcd", 1),
)
CONVOLUTION = ir.Step(
    "conv",
    ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
    (ir.Operand("src", 0), ir.Operand("weights", 2), ir.Operand("dst", 3)),
    (ir.EltwisePostOp("relu", 0.0, 0.0), ir.BinaryPostOp("add", 4)),
)
PROGRAM = ir.Program("region", VALUES, (CONVOLUTION,))
FACTS = StepFacts(PROGRAM, CONVOLUTION, ("aBcd16b", "abcd", "acdb", "abcd"))
WEIGHTS = 2 * 3 * 17
RESULT = 4 * 2 * 3 * 35


def test_operands_come_before_those_of_post_ops() -> None:
    assert operands_of(CONVOLUTION) == [("src", 0), ("weights", 2), ("dst", 3), ("post_op", 4)]
    assert FACTS.roles == ("src", "weights", "dst", "post_op")
    assert FACTS.has("dst") and not FACTS.has("bias")


def test_constants_are_the_same_in_every_call_through_views_too() -> None:
    assert [role for role in ("src", "weights", "dst") if FACTS.is_constant(role)] == ["weights"]


def test_shapes_layouts_and_types_by_role() -> None:
    assert (FACTS.shape("src"), FACTS.padded("src")) == (IMAGE, PADDED)
    assert (FACTS.layout("dst").tag, FACTS.padded("dst")) == ("acdb", (2, 3, 5, 7))
    assert (FACTS.dtype("weights"), FACTS.dtype("dst")) == ("bfloat16", "float32")
    assert (FACTS.info.implementation, FACTS.info.scratchpad_bytes) == ("", 0)


def test_bytes_are_those_that_are_stored() -> None:
    """A view of a constant is one."""
    assert FACTS.operand_bytes == (4 * 2 * 32 * 35, WEIGHTS, RESULT, RESULT)
    assert FACTS.moved_bytes == 4 * 2 * 32 * 35 + WEIGHTS + 2 * RESULT
    assert FACTS.constant_bytes == WEIGHTS
    assert FACTS.image_bytes == 4 * 2 * 32 * 35 + 2 * RESULT


@pytest.mark.parametrize(
    ("attrs", "pieces"), [(ir.Concat(1), 4 * 70 * 17 + RESULT), (ir.Slice((0, 3, 0, 0)), 4 * 70 * 20)]
)
def test_a_concatenation_reads_its_sources_and_a_slice_what_it_gives(
    attrs: ir.Attributes, pieces: int
) -> None:
    values = (*VALUES, ir.Value("all", (2, 20, 5, 7), "float32", "local", "abcd"))
    operands = (ir.Operand("src", 0), ir.Operand("src1", 3), ir.Operand("dst", 5))
    if isinstance(attrs, ir.Slice):
        operands = (ir.Operand("src", 0), ir.Operand("dst", 5))
    step = ir.Step("step", attrs, operands)
    facts = StepFacts(ir.Program("region", values, (step,)), step, ("abcd",) * len(operands))
    assert facts.pieces_bytes == pieces


def test_a_conversion_alone() -> None:
    facts = reorder_facts(IMAGE, "bfloat16", "aBcd16b", "acdb")
    assert isinstance(facts.step.attrs, ir.Reorder)
    assert (facts.layout("src").tag, facts.layout("dst").tag) == ("aBcd16b", "acdb")
    assert facts.operand_bytes == (2 * 2 * 32 * 35, 2 * 2 * 17 * 35)
    assert (facts.constant_bytes, facts.dtype("dst")) == (0, "bfloat16")
    constant = replace(facts, program=facts.program.with_value(0, kind="constant"))
    assert constant.constant_bytes == 2 * 2 * 32 * 35
