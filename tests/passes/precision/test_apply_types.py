"""Programs rewritten for types: where casts stand, what views and constants become."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.program_rules import check_program
from tvm_mxplan.passes.precision.apply_types import TypedProgram, apply_types
from tvm_mxplan.passes.precision.split_pairs import split_pairs
from tvm_mxplan.passes.precision.step_types import StepTypes, in_types, operand_type

WIDE, SHORT = "float32", "bfloat16"
F, S, TO_WIDE = StepTypes(), StepTypes(SHORT, SHORT), StepTypes(SHORT, WIDE)


def matmul(b: ProgramBuilder, src: int, weights: int, rank: int = 2) -> int:
    shape = (*b.values[src].shape[:-1], b.values[weights].shape[-1])
    return b.step("matmul", ir.MatMul(), shape, [("src", src), ("weights", weights)])


def applied(program: ir.Program, *types: StepTypes) -> TypedProgram:
    typed = apply_types(program, types)
    check_program(typed.program)
    return typed


def text(typed: TypedProgram) -> list[str]:
    """``kind src -> dst`` for each step, values by name and type."""
    program = typed.program

    def named(number: int) -> str:
        value = program.values[number]
        return f"{value.name} {'f32' if value.dtype == WIDE else 'bf16'}"

    return [f"{step.name}: {named(step.operand('src'))} -> {named(step.dst)}" for step in program.steps]


def test_nothing_changes_in_float32() -> None:
    b = ProgramBuilder("p")
    x, y = b.port("input", "x", (4, 9), WIDE), b.port("output", "y", (4, 9), WIDE)
    b.write_output(matmul(b, x, b.constant(np.ones((9, 9), "float32"))), y)
    typed = applied(b.finish(), F)
    assert text(typed) == ["matmul0: x f32 -> matmul0 f32"]
    assert typed.constants == ((0, WIDE),) and typed.casts == 0
    assert all((value.index == -1) == (value.kind == "local") for value in typed.program.values)


def test_a_cast_stands_before_the_first_of_its_readers() -> None:
    b = ProgramBuilder("p")
    x, y = b.port("input", "x", (4, 9), WIDE), b.port("output", "y", (4, 9), WIDE)
    weights = b.constant(np.ones((9, 9), "float32"))
    one, two = matmul(b, x, weights), matmul(b, x, weights)
    b.write_output(b.step("add", ir.Binary("add"), (4, 9), [("src", one), ("src1", two)]), y)
    typed = applied(b.finish(), TO_WIDE, TO_WIDE, F)
    assert text(typed) == [
        "cast_x: x f32 -> x bf16",
        "matmul0: x bf16 -> matmul0 f32",
        "matmul1: x bf16 -> matmul1 f32",
        "add0: matmul0 f32 -> add0 f32",
    ]
    assert typed.constants == ((0, SHORT),) and typed.casts == 1
    assert all((value.index == -1) == (value.kind == "local") for value in typed.program.values)


def test_an_output_that_is_written_short_is_cast_behind_its_step() -> None:
    b = ProgramBuilder("p")
    x, y = b.port("input", "x", (4, 9), WIDE), b.port("output", "y", (4, 9), WIDE)
    weights = b.constant(np.ones((9, 9), "float32"))
    shown = matmul(b, x, weights)
    b.write_output(shown, y)
    b.write_output(matmul(b, shown, weights), b.port("output", "z", (4, 9), WIDE))
    typed = applied(b.finish(), S, TO_WIDE)
    assert text(typed) == [
        "cast_x: x f32 -> x bf16",
        "matmul0: x bf16 -> matmul0 bf16",
        "cast_y: y bf16 -> y f32",
        "matmul1: matmul0 bf16 -> matmul1 f32",
    ]
    values = typed.program.values
    assert {value.dtype for value in values if value.kind in ("input", "output")} == {WIDE}


def test_an_output_in_another_shape_is_a_view_of_what_its_step_writes_short() -> None:
    b = ProgramBuilder("p")
    x, y = b.port("input", "x", (4, 9), WIDE), b.port("output", "y", (2, 18), WIDE)
    weights = b.constant(np.ones((9, 9), "float32"))
    hidden = matmul(b, x, weights)
    b.write_output(b.reshape(hidden, (2, 18)), y)
    b.write_output(matmul(b, hidden, weights), b.port("output", "z", (4, 9), WIDE))
    typed = applied(b.finish(), S, TO_WIDE)
    values, (_, first, cast, second) = typed.program.values, typed.program.steps
    assert values[first.dst].alias_of == -1 and values[first.dst].shape == (4, 9)
    assert values[first.dst].dtype == SHORT and second.operand("src") == first.dst
    seen = values[cast.operand("src")]
    assert (seen.alias_of, seen.shape, seen.kind) == (first.dst, (2, 18), "local")
    assert all((value.index == -1) == (value.kind == "local") for value in values)
    assert values[cast.dst].kind == "output" and values[cast.dst].name == "y"


def test_views_are_made_again_on_what_is_cast() -> None:
    b = ProgramBuilder("p")
    x, y = b.port("input", "x", (2, 3, 4), WIDE), b.port("output", "y", (2, 4, 4), WIDE)
    turned = b.permute(x, (0, 2, 1))
    b.write_output(matmul(b, turned, x), y)
    typed = applied(b.finish(), TO_WIDE)
    assert text(typed) == ["cast_x: x f32 -> x bf16", "matmul0: x bf16 -> matmul0 f32"]
    program = typed.program
    source = program.steps[1].operand("src")
    assert program.values[source].layout == "acb"
    assert program.values[source].alias_of == program.steps[1].operand("weights") == program.steps[0].dst


def test_a_constant_stands_in_every_type_that_is_wanted_and_unused_ones_go() -> None:
    b = ProgramBuilder("p")
    x, y = b.port("input", "x", (4, 9), WIDE), b.port("output", "y", (4, 9), WIDE)
    shared, bias = b.constant(np.ones((9, 9), "float32")), b.constant(np.ones((1, 9), "float32"))
    b.constant(np.zeros((5,), "float32"))
    hidden = b.step("matmul", ir.MatMul(), (4, 9), [("src", x), ("weights", shared), ("bias", bias)])
    b.write_output(matmul(b, hidden, shared), y)
    typed = applied(b.finish(), F, TO_WIDE)
    assert typed.constants == ((0, WIDE), (1, WIDE), (0, SHORT))
    first, second = (step for step in typed.program.steps if step.kind == "matmul")
    kinds = [typed.program.values[step.operand("weights")].dtype for step in (first, second)]
    assert kinds == [WIDE, SHORT]


@pytest.mark.parametrize(
    ("role", "constant", "expected"),
    [
        ("src", False, SHORT),
        ("src1", False, SHORT),
        ("src1", True, WIDE),
        ("weights", True, SHORT),
        ("bias", True, WIDE),
        ("bias", False, WIDE),
        ("post_op", False, WIDE),
        ("dst", False, WIDE),
        ("scale", True, WIDE),
    ],
)
def test_types_go_by_roles(role: str, constant: bool, expected: str) -> None:
    assert operand_type(role, constant, TO_WIDE) == expected


def test_a_value_cannot_be_read_in_two_types() -> None:
    values = (
        ir.Value("x", (4, 4), WIDE, "input", "ab", 0),
        ir.Value("y", (4, 4), WIDE, "local", "ab"),
    )
    operands = (ir.Operand("src", 0), ir.Operand("weights", 0), ir.Operand("dst", 1))
    step = ir.Step("s", ir.MatMul(), operands, (ir.BinaryPostOp("add", 0),))
    alone = ir.Program("p", values, (step,))
    assert in_types(alone, TO_WIDE) is None
    assert [value.dtype for value in in_types(alone, S).values] == [SHORT, SHORT]


def test_a_pair_of_convolutions_is_taken_apart() -> None:
    values = (
        ir.Value("x", (1, 8, 9, 7), WIDE, "input", "abcd", 0),
        ir.Value("w", (16, 8, 1, 1), WIDE, "constant", "abcd", 0),
        ir.Value("d", (16, 1, 1, 3, 3), WIDE, "constant", "abcde", 1),
        ir.Value("e", (16,), WIDE, "constant", "a", 2),
        ir.Value("y", (1, 16, 5, 4), WIDE, "output", "abcd", 0),
    )
    clip, relu = ir.EltwisePostOp("clip_v2", 0.0, 6.0), ir.EltwisePostOp("relu", 0.0, 0.0)
    roles = (("src", 0), ("weights", 1), ("dst", 4), ("depthwise_weights", 2), ("depthwise_bias", 3))
    step = ir.Step(
        "conv2d_3",
        ir.Convolution((1, 1), (0,) * 4, (1, 1), 1),
        tuple(ir.Operand(*pair) for pair in roles),
        (clip, ir.DepthwisePostOp(3, 2, 1), relu),
    )
    whole = ir.Program("p", values, (step,))
    assert split_pairs(whole, {"conv2d_3"}) == whole
    apart = split_pairs(whole)
    check_program(apart)
    first, second = apart.steps
    assert apart.values[first.dst].shape == (1, 16, 9, 7)
    assert first.post_ops == (clip,) and second.post_ops == (relu,)
    assert (first.name, second.name) == ("conv2d_3", "conv2d_3.depthwise")
    assert second.attrs == ir.Convolution((2, 2), (1,) * 4, (1, 1), 16)
    assert {o.role: o.value for o in second.operands} == {
        "src": first.dst, "weights": 2, "bias": 3, "dst": 4,
    }  # fmt: skip
