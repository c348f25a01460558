"""Lines in the scales of products of integers: which go, and that results stay what they are.

``fused`` runs each program before and after.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_programs import chain, fused
from test_quantized_rewrites import IMAGE, S8, Numbers, Quantized

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.scales import _are_scales, fold_scales
from tvm_mxplan.core.program import program as ir

TO = (2, 7, 6, 7)
COARSE: Numbers = (0.0517, 3, "uint8")


def vector(b: Quantized, channels: int = 7) -> int:
    return b.constant(b.random.standard_normal((1, channels, 1, 1)).astype("float32"))


def product_of(program: ir.Program) -> ir.Step:
    (product,) = [step for step in program.steps if step.kind == "convolution" and step.is_quantized]
    return product


def test_numbers_of_two_scales_take_two_roundings_and_no_line() -> None:
    b = Quantized(TO, IMAGE)
    y = b.rounded(b.product(b.rounded(b.inputs[0]), 7), S8)
    after = fused(b, b.rounded(b.eltwise(y, "relu"), COARSE))
    assert chain(product_of(after)) == [
        "round",
        "clip",
        "linear",
        "relu",
        *["linear", "round", "clip", "linear"],
    ]
    again = Quantized(TO, IMAGE)
    y = again.rounded(again.product(again.rounded(again.inputs[0]), 7), S8)
    held = again.rounded(again.eltwise(y, "relu"), COARSE)
    after = fused(again, again.product(held, 7))
    first = next(step for step in after.steps if step.kind == "convolution")
    assert chain(first) == ["round", "clip", "relu"]
    assert after.values[first.dst].dtype == "uint8"


def test_a_vector_behind_a_rounding_is_added_in_the_scale_of_the_integers() -> None:
    b = Quantized(TO, IMAGE)
    y = b.rounded(b.product(b.rounded(b.inputs[0]), 7), S8)
    held = b.rounded(b.binary(y, vector(b)), COARSE)
    after = fused(b, b.product(held, 7))
    first = next(step for step in after.steps if step.kind == "convolution")
    assert chain(first) == ["round", "clip", "add"]


def test_a_function_that_does_not_scale_keeps_its_line() -> None:
    b = Quantized(TO, IMAGE)
    y = b.rounded(b.product(b.rounded(b.inputs[0]), 7), S8)
    held = b.rounded(b.eltwise(y, "tanh"), COARSE)
    after = fused(b, b.product(held, 7))
    first = next(step for step in after.steps if step.kind == "convolution")
    assert chain(first) == ["round", "clip", "linear", "tanh"]


def opened(*post_ops: ir.PostOp, whole: bool = True, bias: bool = False) -> Graph:
    """A product of integers with post-ops, open for rewriting."""
    values = [
        ir.Value("x", (1, 4, 5, 5), "uint8", "input", "abcd", 0),
        ir.Value("w", (3, 4, 1, 1), "int8", "constant", "abcd", 0),
        ir.Value("s", (3,), "float32", "constant", "a", 1),
        ir.Value("d", (1,), "float32", "constant", "a", 2),
        ir.Value("b", (3,), "float32", "constant", "a", 3),
        ir.Value("y", (1, 3, 5, 5), "uint8" if whole else "float32", "output", "abcd", 0),
    ]
    roles = [("src", 0), ("weights", 1), ("weights_scale", 2)]
    roles += [("dst_scale", 3)] if whole else []
    roles += [("bias", 4)] if bias else []
    operands = tuple(ir.Operand(role, at) for role, at in [*roles, ("dst", 5)])
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    program = ir.Program("p", tuple(values), (ir.Step("product", attrs, operands, post_ops),))
    constants = [
        np.ones((3, 4, 1, 1), "int8"), np.array([1, 2, 3], "float32"),
        np.array([0.5], "float32"), np.array([4, 5, 6], "float32"),
    ]  # fmt: skip
    return Graph(program, constants)


def line(alpha: float, beta: float = 0.0) -> ir.PostOp:
    return ir.EltwisePostOp("linear", alpha, beta)


ROUND = ir.EltwisePostOp("round", 0.0, 0.0)


def folded(graph: Graph) -> tuple[ir.Step, dict[str, np.ndarray]]:
    fold_scales(graph)
    (step,) = [one for one in graph.steps if one]
    numbers = {one.role: graph.constant(one.value) for one in step.operands}
    return step, {role: array for role, array in numbers.items() if array is not None}


def test_the_first_line_multiplies_scales_and_moves_the_bias() -> None:
    step, numbers = folded(opened(line(2.0, 1.0), ROUND, bias=True))
    assert step.post_ops == (ROUND,)
    assert numbers["weights_scale"].tolist() == [2, 4, 6] and numbers["bias"].tolist() == [9, 11, 13]


def test_the_last_line_divides_the_scale_of_the_result() -> None:
    clip, half = ir.EltwisePostOp("clip", -4.0, 8.0), ir.EltwisePostOp("clip", -2.0, 4.0)
    step, numbers = folded(opened(ROUND, line(2.0), clip))
    assert step.post_ops == (ROUND, half) and numbers["dst_scale"].tolist() == [0.25]


@pytest.mark.parametrize(
    ("post_ops", "whole", "bias"),
    [
        ((line(2.0, 1.0), ROUND), True, False),  # a number, and no bias that it could go to
        ((line(-2.0), ROUND), True, True),
        ((line(1e-45), ROUND), True, True),  # scales would be no normal numbers
        ((ROUND, line(2.0)), False, False),  # a real result has no scale
        ((ROUND, line(2.0, 1.0)), True, False),
        ((ROUND, line(2.0, 1.0), ir.EltwisePostOp("relu", 0.0, 0.0)), True, False),
        ((ROUND, line(2.0), ir.EltwisePostOp("tanh", 0.0, 0.0)), True, False),
    ],
)
def test_lines_that_stay(post_ops: tuple[ir.PostOp, ...], whole: bool, bias: bool) -> None:
    step, numbers = folded(opened(*post_ops, whole=whole, bias=bias))
    assert step.post_ops == post_ops and numbers["weights_scale"].tolist() == [1, 2, 3]


VECTOR = ir.BinaryPostOp("add", 4)  # of 4, 5 and 6
TIMES = ir.BinaryPostOp("mul", 4)
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)


@pytest.mark.parametrize("before", [(), (RELU,), (ir.EltwisePostOp("clip", -4.0, 8.0),)])
def test_a_vector_takes_in_the_number_of_the_line_in_front_of_it(before: tuple[ir.PostOp, ...]) -> None:
    """A function between line and vector keeps both as they are."""
    graph = opened(ROUND, line(2.0, 1.0), *before, VECTOR)
    step, numbers = folded(graph)
    if before:
        assert step.post_ops == (ROUND, line(2.0, 1.0), *before, VECTOR)
        return
    _, added = step.post_ops
    assert isinstance(added, ir.BinaryPostOp) and added.algorithm == "add"
    moved = graph.constant(added.value)
    assert moved is not None and moved.tolist() == [2.5, 3.0, 3.5] and moved.dtype == np.float32
    assert numbers["dst_scale"].tolist() == [0.25]


def test_functions_without_a_number_go_in_front_of_the_factor() -> None:
    graph = opened(ROUND, line(2.0), RELU, VECTOR)
    step, _ = folded(graph)
    _, relu, added = step.post_ops
    assert relu == RELU and isinstance(added, ir.BinaryPostOp)
    moved = graph.constant(added.value)
    assert moved is not None and moved.tolist() == [2.0, 2.5, 3.0]


@pytest.mark.parametrize(
    "post_ops",
    [
        (ROUND, line(2.0), TIMES),
        (ROUND, line(2.0), ir.BinaryPostOp("add", 0)),  # of no constant
        (ROUND, line(2.0), ir.BinaryPostOp("add", 1)),  # of integers
        (ROUND, line(1.2e-38), VECTOR),  # numbers beyond all
        (ROUND, line(2.0), ir.SumPostOp()),
    ],
)
def test_lines_that_what_is_behind_them_keeps(post_ops: tuple[ir.PostOp, ...]) -> None:
    step, numbers = folded(opened(*post_ops))
    assert step.post_ops == post_ops and numbers["dst_scale"].tolist() == [0.5]


@pytest.mark.parametrize(("bias", "constant"), [(False, True), (True, True), (True, False)])
def test_a_first_line_without_a_number_needs_no_bias(bias: bool, constant: bool) -> None:
    """One that is there has to be known."""
    graph = opened(line(2.0), ROUND, bias=bias)
    if not constant:
        graph.values[4] = replace(graph.values[4], kind="input", index=1)
    step, numbers = folded(graph)
    assert step.post_ops == ((ROUND,) if constant else (line(2.0), ROUND))
    assert numbers["weights_scale"].tolist() == ([2, 4, 6] if constant else [1, 2, 3])
    assert not (bias and constant) or numbers["bias"].tolist() == [8, 10, 12]


def test_scales_are_numbers_that_float32_holds_to_full_precision() -> None:
    least = np.finfo("float32").tiny
    assert _are_scales(np.array([least, 1.0], "float32"))
    for wrong in (np.nextafter(least, np.float32(0)), 0.0, -1.0, np.inf, np.nan):
        assert not _are_scales(np.array([1.0, wrong], "float32"))
