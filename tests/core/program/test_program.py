"""Region programs: who reads what, whose bytes they are, and programs built one step at a time."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Expr, Symbol
from tvm_mxplan.core.program.renumber import select_values, sort_values
from tvm_mxplan.core.program.specialize import specialize, typical, typical_shape

RELU = ir.Eltwise("relu", 0.0, 0.0)
N, H = Symbol("n"), Symbol("h")


def value(name: str, alias_of: int = -1, kind: ir.ValueKind = "local", index: int = -1) -> ir.Value:
    return ir.Value(name, (2, 3), "float32", kind, "ab", index, alias_of)


def step(name: str, dst: int, *srcs: int, post_ops: tuple[ir.PostOp, ...] = ()) -> ir.Step:
    operands = tuple(ir.Operand("src", src) for src in srcs)
    return ir.Step(name, RELU, (*operands, ir.Operand("dst", dst)), post_ops)


def test_what_is_not_known_is_minus_one() -> None:
    """The byte format and the runtime know it by that."""
    bare, one = ir.Value("v", (2,), "float32", "local", "a"), ir.Step("s", RELU, ())
    assert (bare.index, bare.alias_of, bare.offset, bare.nbytes) == (-1, -1, -1, -1)
    assert (one.scratchpad_offset, one.scratchpad_bytes, one.implementation, one.post_ops) == (-1, -1, "", ())
    program = ir.Program("p", (), ())
    assert (program.arena_bytes, program.symbols, bare.alias_offset) == (-1, (), 0)
    assert ir.SumPostOp() == ir.SumPostOp(1.0)


def test_a_value_inside_of_a_region_has_no_number_and_no_state() -> None:
    crossing = ir.Value("v", (2, 3), "float32", "output", "ab", 3, nbytes=24, state=1)
    assert crossing.inside(alias_of=5) == ir.Value(
        "v", (2, 3), "float32", "local", "ab", alias_of=5, nbytes=24
    )


def test_every_kind_of_attributes_has_a_name() -> None:
    assert set(ir.STEP_KINDS.values()) == set(get_args(ir.Attributes)) == set(ir.KIND_OF)


# --- what a program says of itself -------------------------------------------------------------------------


def test_what_a_step_reads() -> None:
    post_ops = (ir.EltwisePostOp("relu", 0.0, 0.0), ir.BinaryPostOp("add", 5), ir.SumPostOp())
    one = step("s", 4, 1, 2, 1, post_ops=post_ops)
    assert list(one.reads()) == [1, 2, 1, 5]
    assert (one.dst, one.operand("src"), one.kind) == (4, 1, "eltwise")
    with pytest.raises(KeyError, match="s: no operand in role 'bias'"):
        one.operand("bias")


def test_a_sum_reads_what_its_destination_aliases() -> None:
    values = (value("x", kind="input", index=0), value("a"), value("y", alias_of=0))
    adding, plain = step("s", 2, 1, post_ops=(ir.SumPostOp(),)), step("t", 2, 1)
    program = ir.Program("p", values, (adding, plain))
    assert program.reads(adding) == [1, 0]
    assert program.reads(plain) == [1]


def test_a_sum_into_an_output_reads_no_value() -> None:
    """The tensor that is added stands in the caller's memory."""
    adding = step("s", 1, 0, post_ops=(ir.SumPostOp(),))
    values = (value("x", kind="input", index=0), value("y", kind="output", index=0))
    assert ir.Program("p", values, (adding,)).reads(adding) == [0]


def test_a_depthwise_post_op_makes_a_step_two() -> None:
    assert step("s", 1, 0, post_ops=(ir.SumPostOp(), ir.DepthwisePostOp(3, 1, 1))).has_depthwise
    assert not step("s", 1, 0, post_ops=(ir.SumPostOp(),)).has_depthwise


def test_bytes_belong_to_the_root_of_aliases() -> None:
    """Value 0 owns what 2 and then 3 view."""
    values = (value("a"), value("b"), value("c", alias_of=0), value("d", alias_of=2))
    program = ir.Program("p", values, ())
    assert [program.root(number) for number in range(4)] == [0, 1, 0, 0]


def test_values_of_a_kind_go_by_their_index() -> None:
    values = (value("b", kind="input", index=1), value("l"), value("a", kind="input", index=0))
    program = ir.Program("p", values, ())
    assert (program.of_kind("input"), program.of_kind("local"), program.of_kind("output")) == (
        [2, 0],
        [1],
        [],
    )
    assert program.with_value(1, name="m", nbytes=8).values[1] == ir.Value(
        "m", (2, 3), "float32", "local", "ab", nbytes=8
    )


# --- renumbering -------------------------------------------------------------------------------------------


def test_every_alias_comes_to_stand_behind_what_it_views() -> None:
    values = (
        value("view of view", 1),
        value("view", 3),
        value("other"),
        value("whole", kind="output", index=0),
    )
    steps = (step("s", 1, 2, post_ops=(ir.BinaryPostOp("add", 0), ir.SumPostOp())),)
    program = sort_values(ir.Program("p", values, steps))
    assert [one.name for one in program.values] == ["other", "whole", "view", "view of view"]
    assert [one.alias_of for one in program.values] == [-1, -1, 1, 2]
    assert program.steps == (step("s", 2, 0, post_ops=(ir.BinaryPostOp("add", 3), ir.SumPostOp())),)
    assert sort_values(program) == program


def test_a_view_of_the_first_value_follows_it() -> None:
    values = (value("view", 2), value("view of view", 0), value("whole"))
    program = sort_values(ir.Program("p", values, ()))
    assert [(one.name, one.alias_of) for one in program.values] == [
        ("whole", -1), ("view", 0), ("view of view", 1),
    ]  # fmt: skip


def test_aliases_in_a_circle_are_refused() -> None:
    with pytest.raises(ValueError, match=r"p: the aliases of .* form a cycle"):
        sort_values(ir.Program("p", (value("a", 1), value("b", 0)), ()))
    chain = ir.Program("p", tuple(value(str(n), n + 1 if n < 3 else -1) for n in range(4)), ())
    assert [one.alias_of for one in sort_values(chain).values] == [-1, 0, 1, 2]


def test_values_that_nothing_needs_are_left_out() -> None:
    values = (value("x", kind="input", index=0), value("gone"), value("y", alias_of=0))
    program = select_values(ir.Program("p", values, (step("s", 2, 0),)), [0, 2])
    assert [(one.name, one.alias_of) for one in program.values] == [("x", -1), ("y", 0)]
    assert program.steps == (step("s", 1, 0),)


# --- symbols -----------------------------------------------------------------------------------------------


def test_a_program_at_numbers() -> None:
    values = (
        ir.Value("x", (N, 3, H), "float32", "input", "abc", 0),
        ir.Value(
            "y", (N, Expr("//", H, 2)), "float32", "local", "ab", alias_of=0, alias_offset=Expr("*", N, 4)
        ),
    )
    program = ir.Program("p", values, (), (ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("h", 0, 2)))
    at = specialize(program, {"n": 5, "h": 9})
    assert [one.shape for one in at.values] == [(5, 3, 9), (5, 4)]
    assert (at.values[1].alias_offset, at.symbols) == (20, ())
    with pytest.raises(KeyError, match="h"):
        specialize(program, {"n": 5})


def test_typical_numbers_are_few_images_and_many_pixels() -> None:
    """The first axis is a batch, wherever the symbol occurs again."""
    values = (ir.Value("x", (N, N, H), "float32", "input", "abc", 0),)
    program = ir.Program("p", values, (), (ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("h", 0, 2)))
    batch, again, extent = typical(program).values[0].shape
    assert batch == again != extent
    assert 1 < batch < 16 < extent  # type: ignore[operator]
    assert typical_shape((N, 7, Expr("+", H, 1))) == (batch, 7, extent + 1)  # type: ignore[operator]


# --- the builder -------------------------------------------------------------------------------------------


def test_names_and_numbers_are_given_in_order() -> None:
    b = ProgramBuilder("p")
    x, z = (b.port("input", name, (2, 3), "float32") for name in "xz")
    y = b.port("output", "y", (2, 3), "float32")
    first = b.step("relu", RELU, (2, 3), [("src", x)])
    second = b.step("relu", RELU, (2, 3), [("src", z)])
    program = b.finish()
    assert [program.values[number].index for number in (x, z, y)] == [0, 1, 0]
    assert [one.name for one in program.steps] == ["relu0", "relu1"]
    assert [program.values[number].name for number in (first, second)] == ["relu0", "relu1"]


def test_steps_of_an_operator_go_by_its_name() -> None:
    """The first that computes has the name itself; reorders in front of it do not."""
    b = ProgramBuilder("p")
    b.operator = "softmax_3"
    moved = b.plain_copy(b.port("input", "x", (2, 3), "float32"))
    done = b.step("softmax", ir.Softmax("softmax", 1), (2, 3), [("src", moved)])
    b.step("mul", RELU, (2, 3), [("src", done)])
    b.step("mul", RELU, (2, 3), [("src", done)])
    assert [one.name for one in b.steps] == [
        "softmax_3.reorder0",
        "softmax_3",
        "softmax_3.mul0",
        "softmax_3.mul1",
    ]


def test_the_same_bytes_are_one_constant_for_each_shape() -> None:
    b, array = ProgramBuilder("p"), np.arange(6, dtype="float32")
    one = b.constant(array, "w")
    assert b.constant(array) == b.constant(array[:]) == one
    others = [b.constant(array.reshape(2, 3)), b.constant(array.copy()), b.constant(array.view("int32"))]
    assert len({one, *others}) == 4
    assert [b.values[number].index for number in (one, *others)] == [0, 1, 2, 3]
    assert [b.values[number].name for number in (one, *others)] == [
        "w",
        "constant1",
        "constant2",
        "constant3",
    ]
    assert b.values[others[0]].layout == "ab"


def test_views_cost_no_step() -> None:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (2, 3, 4), "float32")
    assert b.reshape(x, (2, 3, 4)) == x
    flat, turned = b.reshape(x, (6, 4)), b.permute(x, (2, 0, 1))
    assert [(b.values[v].shape, b.values[v].layout, b.values[v].alias_of) for v in (flat, turned)] == [
        ((6, 4), "ab", x),
        ((4, 2, 3), "bca", x),
    ]
    assert b.steps == []
    straight = b.reshape(turned, (24,))
    (copy,) = b.steps
    assert (copy.kind, copy.operand("src"), b.values[straight].alias_of) == ("reorder", turned, copy.dst)
    assert b.values[copy.dst].layout == "abc"


def test_axes_of_extent_1_are_put_in_front() -> None:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (3, 4), "float32")
    assert b.values[b.align(x, 4)].shape == (1, 1, 3, 4)
    assert b.align(x, 2) == x


def written(shape: tuple, out: tuple, **how: bool) -> tuple[list[str], ir.Program]:
    """Kinds of steps after a result was written to an output, and the program."""
    b = ProgramBuilder("p")
    y = b.port("output", "y", out, "float32")
    x = b.port("input", "x", shape, "float32")
    result = x if how.get("input") else b.step("relu", RELU, shape, [("src", x)])
    if how.get("permuted"):
        result = b.permute(result, range(len(shape))[::-1])
    if how.get("viewed"):
        result = b.reshape(result, out)
    if how.get("twice"):
        b.write_output(b.step("relu", RELU, shape, [("src", x)]), y)
    b.write_output(result, y)
    return [one.kind for one in b.steps], b.finish()


def test_a_result_is_made_where_the_output_is_if_its_bytes_are_the_regions_own() -> None:
    """The output is value 0, which no rule may take for none."""
    for shape, out, how in (
        ((2, 3), (2, 3), {}),
        ((2, 3), (6,), {"viewed": True}),
        ((N, 3), (N, 3), {}),
        ((N, H, 2), (H, 2, N), {}),
    ):
        kinds, program = written(shape, out, **how)
        assert kinds == ["eltwise"], (shape, how)
        assert program.root(program.steps[0].dst) == 0
    for shape, out, how in (
        ((2, 3), (2, 3), {"input": True}),
        ((2, 3), (3, 2), {"permuted": True}),
        ((N, 3), (H, 3), {}),
        ((N, 3), (N, 4), {}),
    ):
        kinds, program = written(shape, out, **how)
        assert kinds[-1] == "reorder", (shape, how)
        assert program.steps[-1].dst == 0
    kinds, program = written((2, 3), (2, 3), twice=True)
    assert kinds == ["eltwise", "eltwise", "reorder"]


def test_products_of_integers_are_those_with_a_scale_of_their_weights() -> None:
    def product(*more: str) -> ir.Step:
        roles = ("src", "weights", *more, "dst")
        return ir.Step("p", ir.MatMul(), tuple(ir.Operand(role, at) for at, role in enumerate(roles)))

    assert product("weights_scale").is_quantized and product("src_scale", "weights_scale").is_quantized
    assert not product().is_quantized and not product("src_scale").is_quantized
