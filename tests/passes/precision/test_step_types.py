"""Types of single steps: what is proposed for each kind, and what an operand has by its role."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.step_types import (
    StepTypes,
    computes,
    computes_in_float,
    in_types,
    is_open,
    moves,
    operand_type,
    proposals,
    proposals_in,
)

WIDE, SHORT = "float32", "bfloat16"
F, S, TO_WIDE, TO_SHORT = StepTypes(), StepTypes(SHORT, SHORT), StepTypes(SHORT, WIDE), StepTypes(WIDE, SHORT)
CONV = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)


def step(attrs: ir.Attributes, *post_ops: ir.PostOp) -> ir.Step:
    return ir.Step("s", attrs, (ir.Operand("src", 0), ir.Operand("dst", 1)), post_ops)


def on_caches() -> ir.Step:
    roles = ("src", "key", "value", "past_key", "past_value", "joined_key", "joined_value", "dst")
    operands = tuple(ir.Operand(role, at) for at, role in enumerate(roles))
    return ir.Step("s", ir.Attention(1.0), operands)


def test_only_float32_on_both_sides_is_float() -> None:
    assert StepTypes(WIDE, WIDE) == F
    assert [types.is_float for types in (F, S, TO_WIDE, TO_SHORT)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (step(CONV), [F, S, TO_WIDE]),
        (step(CONV, RELU, ir.BinaryPostOp("add", 0)), [F, S, TO_WIDE]),
        (step(ir.MatMul()), [F, S, TO_WIDE]),
        (step(ir.Recurrent("lstm", "both")), [F, TO_WIDE]),
        (step(ir.BatchNormalizationTraining(1e-5)), [F]),
        (step(ir.BatchNormalizationBackward(1e-5)), [F]),
        (step(CONV, RELU, ir.SumPostOp()), [F]),
        (step(CONV, RELU, ir.DepthwisePostOp(3, 1, 1)), [F]),
        (step(ir.LayerNormalization(1e-5)), [F, S, TO_WIDE, TO_SHORT]),
        (step(ir.Reorder()), [F, S, TO_WIDE, TO_SHORT]),
        (step(ir.Softmax("softmax", 1)), [F]),
        (step(ir.Eltwise("exp", 0.0, 0.0)), [F, S]),
        (step(ir.Concat(1)), [F, S]),
        (step(ir.Attention(1.0)), [F, S]),
        (on_caches(), [F]),
    ],
    ids=lambda value: value.kind if isinstance(value, ir.Step) else "",
)
def test_what_is_proposed(of: ir.Step, expected: list[StepTypes]) -> None:
    assert proposals(of, SHORT) == expected


@pytest.mark.parametrize("types", [F, S, TO_WIDE, TO_SHORT])
@pytest.mark.parametrize("constant", [False, True])
def test_operands_by_their_roles(types: StepTypes, constant: bool) -> None:
    """Filters are read short though they are constants; other constants and statistics stay as they are."""
    for role in ("weights", "depthwise_weights", "recurrence"):
        assert operand_type(role, constant, types) == types.read
    for role in ("dst", "last_hidden"):
        assert operand_type(role, constant, types) == types.written
    for role in ("src", "src1"):
        assert operand_type(role, constant, types) == (WIDE if constant else types.read)
    assert operand_type("post_op", constant, types) == (WIDE if constant else types.written)
    for role in ("bias", "mean", "scale", "condition", "hidden", "cell"):
        assert operand_type(role, constant, types) == WIDE


def alone(post_op: int = 3) -> ir.Program:
    """A product with a bias and something added behind it."""
    values = (
        ir.Value("x", (4, 9), WIDE, "input", "ab", 0),
        ir.Value("w", (9, 9), WIDE, "constant", "ab", 0),
        ir.Value("b", (1, 9), WIDE, "constant", "ab", 1),
        ir.Value("other", (4, 9), WIDE, "input", "ab", 1),
        ir.Value("y", (4, 9), WIDE, "local", "ab"),
    )
    roles = (("src", 0), ("weights", 1), ("bias", 2), ("dst", 4))
    operands = tuple(ir.Operand(*pair) for pair in roles)
    return ir.Program("p", values, (ir.Step("s", ir.MatMul(), operands, (ir.BinaryPostOp("add", post_op),)),))


def test_a_step_alone_has_every_operand_in_its_type() -> None:
    def types(chosen: StepTypes) -> list[str]:
        typed = in_types(alone(), chosen)
        assert typed is not None and typed.steps == alone().steps
        return [value.dtype for value in typed.values]

    assert types(F) == [WIDE] * 5
    assert types(S) == [SHORT, SHORT, WIDE, SHORT, SHORT]
    assert types(TO_WIDE) == [SHORT, SHORT, WIDE, WIDE, WIDE]
    assert types(TO_SHORT) == [WIDE, WIDE, WIDE, SHORT, SHORT]


def test_a_value_that_is_read_twice_has_one_type() -> None:
    assert in_types(alone(post_op=0), TO_WIDE) is None
    assert in_types(alone(post_op=0), TO_SHORT) is None
    assert in_types(alone(post_op=0), S) is not None


def test_all_that_a_step_touches_has_to_be_float32() -> None:
    program = alone()
    assert computes_in_float(program, program.steps[0])
    for number in range(5):
        other = program.with_value(number, dtype="int32")
        assert not computes_in_float(other, other.steps[0])


def beside_integers(attrs: ir.Attributes, src: str, dst: str, added: str = "") -> ir.Program:
    """A step that reads ``src`` and writes ``dst``, with scales on sides of integers."""
    values = [
        ir.Value("x", (4, 4), src, "input", "ab", 0),
        ir.Value("w", (4, 4), "int8", "constant", "ab", 0),
        ir.Value("s", (1,), WIDE, "constant", "a", 1),
        ir.Value("r", (4, 4), added or WIDE, "input", "ab", 1),
        ir.Value("y", (4, 4), dst, "output", "ab", 0),
    ]
    roles = [("src", 0)] + ([("src_scale", 2)] if src != WIDE else [])
    roles += [("weights", 1), ("weights_scale", 2)] if isinstance(attrs, ir.MatMul) else []
    roles += [("dst_scale", 2)] if dst != WIDE else []
    operands = tuple(ir.Operand(*pair) for pair in [*roles, ("dst", 4)])
    post_ops = (ir.BinaryPostOp("add", 3),) if added else ()
    return ir.Program("p", tuple(values), (ir.Step("s", attrs, operands, post_ops),))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (beside_integers(ir.Quantization(0), WIDE, "uint8"), [F, TO_WIDE]),
        (beside_integers(ir.Quantization(0), "int8", WIDE), [F, TO_SHORT]),
        (beside_integers(ir.Quantization(0), "int8", "uint8"), [F]),
        (beside_integers(ir.MatMul(), "uint8", WIDE), [F, TO_SHORT]),
        (beside_integers(ir.MatMul(), "uint8", "uint8"), [F]),
        (beside_integers(ir.MatMul(), "uint8", "uint8", WIDE), [F, TO_SHORT]),
        (beside_integers(ir.MatMul(), "uint8", "uint8", "uint8"), [F]),
    ],
)
def test_what_is_real_beside_integers_may_be_short(program: ir.Program, expected: list[StepTypes]) -> None:
    (step,) = program.steps
    assert is_open(program, step) and proposals_in(program, step, SHORT) == expected
    typed = in_types(program, expected[-1])
    assert typed is not None
    before, after = (
        {o.role: one.values[o.value].dtype for o in one.steps[0].operands} for one in (program, typed)
    )
    for role, dtype in before.items():
        short = dtype == WIDE and not role.endswith("scale") and expected[-1] != F
        assert after[role] == (SHORT if short else dtype)


def test_a_step_of_other_types_is_not_open() -> None:
    program = beside_integers(ir.Eltwise("relu", 0.0, 0.0), "int8", WIDE)
    assert not is_open(program, program.steps[0])


def test_steps_that_compute_and_steps_that_move() -> None:
    """Functions behind steps that move elements count as computing."""
    for of, by_itself, moving in (
        (step(CONV), True, False),
        (step(CONV, RELU), True, False),
        (step(ir.Reorder()), False, True),
        (step(ir.Reorder(), RELU), True, True),
        (step(ir.Concat(1)), False, True),
    ):
        assert (computes(of), moves(of)) == (by_itself, moving)
