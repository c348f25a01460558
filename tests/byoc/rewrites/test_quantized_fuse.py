"""Fusing of products of integers: roundings and lines that they take in, and the number of post-ops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_programs import chain, fused, kinds
from test_quantized_rewrites import IMAGE, ROUNDED, S8, U8, Quantized, types

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.fuse import (
    _inverse,
    _is_added,
    _with_one_line_each,
    take_conversion,
)
from tvm_mxplan.core.program import program as ir

RELU, ROUND = (ir.EltwisePostOp(name, 0.0, 0.0) for name in ("relu", "round"))


def line(alpha: float, beta: float) -> ir.EltwisePostOp:
    return ir.EltwisePostOp("linear", alpha, beta)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], []),
        ([RELU], [RELU]),
        ([line(2.0, 1.0)], [line(2.0, 1.0)]),
        ([line(2.0, 1.0), line(3.0, 5.0)], [line(6.0, 8.0)]),
        ([line(2.0, 1.0), line(3.0, 5.0), line(0.5, -1.0)], [line(3.0, 3.0)]),
        ([line(2.0, 1.0), RELU, line(3.0, 5.0)], [line(2.0, 1.0), RELU, line(3.0, 5.0)]),
        ([RELU, RELU, ROUND], [RELU, RELU, ROUND]),
        ([ir.BinaryPostOp("add", 3), line(2.0, 0.0)], [ir.BinaryPostOp("add", 3), line(2.0, 0.0)]),
        ([line(2.0, 0.0), ir.BinaryPostOp("add", 3)], [line(2.0, 0.0), ir.BinaryPostOp("add", 3)]),
    ],
)
def test_two_lines_in_a_row_are_one(before: list[ir.PostOp], after: list[ir.PostOp]) -> None:
    assert _with_one_line_each(before) == tuple(after)


def test_lines_are_joined_in_the_numbers_that_they_are_computed_in() -> None:
    (found,) = _with_one_line_each([line(0.1, 0.3), line(0.7, 0.9)])
    assert isinstance(found, ir.EltwisePostOp)
    assert found.alpha == float(np.float32(0.1) * np.float32(0.7))
    assert found.beta == float(np.float32(0.3) * np.float32(0.7) + np.float32(0.9))
    assert _inverse(0.0237) == float(np.float32(1) / np.float32(0.0237)) != 1 / 0.0237


@pytest.mark.parametrize(
    ("numbers", "low", "high"),
    [
        (U8, -121.0, 134.0),
        (S8, -121.0, 134.0),
        ((0.5, 0, "uint8"), 0.0, 255.0),
        ((0.5, 0, "int8"), -128.0, 127.0),
    ],
)
def test_a_rounding_ends_where_the_type_does(
    numbers: tuple[float, int, str], low: float, high: float
) -> None:
    b = Quantized((2, 7, 6, 7), IMAGE)
    after = fused(b, b.rounded(b.product(b.rounded(b.inputs[0]), 7), numbers))
    assert chain(after.steps[1]) == ROUNDED[1:]  # the first line is in the weights' scales
    _, clip, back = after.steps[1].post_ops
    assert (clip.alpha, clip.beta) == (low, high)  # type: ignore[union-attr]
    scale = float(np.float32(numbers[0]))
    assert (back.alpha, back.beta) == (scale, 0.0)  # type: ignore[union-attr]


def converted(count: int, *, whole: bool) -> tuple[Graph, int]:
    """A product with so many functions behind it, a conversion into integers, and, last, the one back."""
    b = Quantized((2, 7, 6, 7), IMAGE)
    b.write_output(b.rounded(b.conv(b.inputs[0], 7), S8), b.output)
    program = b.finish()
    product, there, back = program.steps
    product = replace(product, post_ops=(RELU,) * count)
    if whole:  # it writes the integers itself
        scales = [operand for operand in there.operands if operand.role.startswith("dst_")]
        operands = [operand for operand in product.operands if operand.role != "dst"]
        scale = next(operand.value for operand in scales)
        numbers = [ir.Operand(role, scale) for role in ("src_scale", "weights_scale")]
        operands += [*numbers, *scales, ir.Operand("dst", there.dst)]
        steps = (replace(product, operands=tuple(operands)), back)
    else:
        steps = (product, there, back)
    return Graph(replace(program, steps=steps), list(b.constants)), len(steps) - 1


@pytest.mark.parametrize(("count", "taken"), [(0, True), (20, True), (21, False)])
def test_products_of_real_numbers_round_with_at_most_24_post_ops(count: int, taken: bool) -> None:
    graph, at = converted(count, whole=False)
    take_conversion(graph, at)
    left = [step for step in graph.steps if step]
    assert [step.kind for step in left] == ["convolution", *["quantization"] * (0 if taken else 2)]
    assert len(left[0].post_ops) == count + 4 * taken


@pytest.mark.parametrize(("count", "taken"), [(0, True), (19, True), (20, False)])
def test_products_of_integers_round_where_there_is_room_for_a_sum_too(count: int, taken: bool) -> None:
    graph, at = converted(count, whole=True)
    take_conversion(graph, at)
    left = [step for step in graph.steps if step]
    assert [step.kind for step in left] == ["convolution", *["quantization"] * (not taken)]
    assert len(left[0].post_ops) == count + 4 * taken


@pytest.mark.parametrize("turned", [False, True])
def test_a_sum_is_made_in_the_later_product(turned: bool) -> None:
    b = Quantized((2, 7, 6, 7), IMAGE)
    x = b.rounded(b.inputs[0])
    first, second = (b.rounded(b.product(x, 7), numbers) for numbers in (U8, S8))
    after = fused(b, b.binary(*((second, first) if turned else (first, second))))
    assert kinds(after).count("binary") == 0
    (product,) = [step for step in after.steps if "add" in chain(step)]
    assert product is after.steps[-1] and chain(product)[:3] == ROUNDED[1:]
    rounding = product.post_ops[2]
    assert isinstance(rounding, ir.EltwisePostOp)
    own, other = S8, U8  # it adds the integers that the first one writes, in their scale
    assert rounding.alpha == pytest.approx(own[0] / other[0])


@pytest.mark.parametrize("algorithm", ["mul", "sub", "max"])
def test_only_sums_are_made_in_products(algorithm: str) -> None:
    b = Quantized((2, 5, 6, 7), IMAGE)
    x = b.rounded(b.inputs[0])
    after = fused(b, b.binary(b.rounded(b.product(x, 5), S8), b.eltwise(x, "tanh"), algorithm))
    assert not any("add" in chain(step) for step in after.steps)


def test_an_addend_that_is_spread_is_not_made_in_its_product() -> None:
    """The smaller one of both: the sum has more elements than its product."""
    b = Quantized((2, 5, 6, 7), IMAGE, (2, 5, 1, 1))
    small = b.rounded(b.product(b.rounded(b.inputs[1]), 5), S8)
    after = fused(b, b.binary(b.eltwise(b.inputs[0], "tanh"), small))
    assert types(after)[-1][1] == "float32"
    assert not any("add" in chain(step) for step in after.steps if step.kind == "convolution")


def test_results_with_a_scale_for_each_channel_are_written_by_a_conversion() -> None:
    b = Quantized((2, 7, 6, 7), IMAGE)
    made = b.product(b.rounded(b.inputs[0]), 7)
    row = b.constant(np.linspace(0.02, 0.03, 7, dtype="float32"))
    whole = b.step("q", ir.Quantization(1), (2, 7, 6, 7), [("src", made), ("dst_scale", row)], "int8")
    back = b.step("d", ir.Quantization(1), (2, 7, 6, 7), [("src", whole), ("src_scale", row)], "float32")
    after = fused(b, back)
    assert types(after)[-2:] == [("quantization", "int8"), ("quantization", "float32")]


def test_a_product_of_real_numbers_in_a_matrix_rounds_too() -> None:
    q = Quantized((4, 7), (4, 6))
    after = fused(q, q.rounded(q.matmul(q.inputs[0], 7)))
    assert kinds(after) == ["matmul"] and chain(after.steps[0]) == ROUNDED


@pytest.mark.parametrize(
    ("first", "second", "rows", "added"),
    [
        ("mul", "add", 2, True),
        ("add", "mul", 2, False),  # it is the other one that adds
        ("add", "add", 2, True),
        ("mul", "add", 1, False),  # to a tensor of another shape
    ],
)
@pytest.mark.parametrize("between", ["a step", "one that is gone", "nothing"])
def test_the_step_that_reads_a_conversion_says_what_becomes_of_it(
    first: str, second: str, rows: int, added: bool, between: str
) -> None:
    """Another step, or one that was dropped, may stand between both."""
    whole, other = (2, 3), (rows, 3)
    values = (
        ir.Value("q", whole, "uint8", "input", "ab", 0),
        ir.Value("x", other, "float32", "input", "ab", 1),
        ir.Value("scale", (1,), "float32", "constant", "a", 0),
        ir.Value("real", whole, "float32", "local", "ab"),
        ir.Value("between", other, "float32", "local", "ab"),
        ir.Value("y", whole, "float32", "output", "ab", 0),
    )

    def step(name: str, attrs: ir.Attributes, **roles: int) -> ir.Step:
        return ir.Step(name, attrs, tuple(ir.Operand(role, value) for role, value in roles.items()))

    steps = (
        step("conversion", ir.Quantization(0), src=0, src_scale=2, dst=3),
        step("first", ir.Binary(first), src=1, src1=1, dst=4),
        step("second", ir.Binary(second), src=3, src1=1, dst=5),
    )
    if between == "nothing":
        steps = (steps[0], steps[2])
    graph = Graph(ir.Program("p", values, steps), [np.ones(1, "float32")])
    if between == "one that is gone":
        graph.drop(1)
    assert _is_added(graph, 0, 3) == added
    assert not _is_added(graph, 0, 5), "an output is no one's alone"
