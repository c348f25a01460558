"""Functions of two tensors: every broadcast, constants on either side, numbers, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check

KINDS = ("Add", "Sub", "Mul", "Div", "Max", "Min")


SECOND = [
    ((2, 17, 5, 7), (2, 17, 5, 7)),
    ((2, 17, 5, 7), (17, 1, 1)),
    ((2, 17, 5, 7), (2, 17, 1, 1)),
    ((2, 17, 5, 7), (7,)),
    ((2, 17, 5, 7), (5, 1)),
    ((2, 17, 5, 7), (2, 1, 5, 7)),
    ((2, 17, 5, 7), (1,)),
    ((3, 17), (17,)),
    ((2, 5, 17), (2, 1, 17)),
    ((7,), (7,)),
    ((2, 3, 4, 5, 6), (3, 1, 1, 1)),
]
FIRST = [((17, 1, 1), (2, 17, 5, 7)), ((5, 1), (2, 17, 5, 7)), ((17,), (3, 17)), ((2, 1, 4), (2, 3, 4))]


@pytest.mark.parametrize("kind", KINDS)
def test_broadcast_of_either_operand(kind):
    g = Graph()
    outputs = [g.op(kind, g.positive(*left), g.positive(*right)) for left, right in SECOND + FIRST]
    check(g, *outputs, steps={"binary": len(outputs)})


@pytest.mark.parametrize("kind", KINDS)
def test_constants_on_either_side(kind):
    g, outputs = Graph(), []
    for shape in ((17, 1, 1), (2, 17, 5, 7), (5, 1)):
        x, c = g.positive(2, 17, 5, 7), g.constant(data=g.random.uniform(0.5, 2.0, shape).astype("float32"))
        outputs += [g.op(kind, x, c), g.op(kind, c, x)]
    check(g, *outputs, steps={"binary": len(outputs)})


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_on_either_side(kind):
    g, outputs = Graph(), []
    for shape in ((), (1,), (1, 1, 1, 1)):
        x, c = g.positive(2, 17, 5, 7), g.constant(data=np.full(shape, 0.7, "float32"))
        outputs += [g.op(kind, x, c), g.op(kind, c, x)]
    check(g, *outputs, steps={"binary" if kind == "Min" else "eltwise": len(outputs)})


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("channels", [3, 17, 64])
def test_two_branches_in_every_layout(channels, layouts):
    g = Graph()
    shared = g.conv(g.input(2, 3, 5, 5), 3, channels)
    pooled = [g.op("MaxPool", shared, kernel_shape=[k, k], auto_pad="SAME_UPPER") for k in (2, 3, 4)]
    outputs = [g.op(kind, y, shared) for kind, y in zip(("Add", "Mul", "Max"), pooled, strict=True)]
    steps = {"convolution": 1, "pooling": 3, "binary": 3}
    check(g, *outputs, steps=steps, reduction=27, layouts=layouts)


def test_one_tensor_twice():
    g = Graph()
    x = g.positive(1, 17, 5, 5)
    check(g, *[g.op(kind, x, x) for kind in KINDS], steps={"binary": len(KINDS)})


def test_both_broadcast_is_left_to_tvm():
    g = Graph()
    y = g.op("Add", g.input(2, 17, 1, 5), g.input(1, 17, 5, 1))
    check(g, y, steps={}, fallbacks={"add": "both operands"})


def test_broadcast_along_axes_far_apart_is_left_to_tvm():
    g = Graph()
    y = g.op("Add", g.input(2, 3, 4, 5, 6), g.input(3, 1, 1, 6))
    check(g, y, steps={}, fallbacks={"add": "far apart"})


@pytest.mark.parametrize(
    ("kind", "name"), [("Add", "add"), ("Sub", "subtract"), ("Mul", "multiply"), ("Div", "divide")]
)
def test_random_broadcast(kind, name):
    """One step for each, but for those that are refused because they would be reference code."""
    g, outputs, refused = Graph(len(name)), [], 0
    for last in range(2, 18):  # no two alike: TVM makes one region of equal ones
        shape = (*(int(g.random.choice([1, 2, 3])) for _ in range(int(g.random.integers(0, 5)))), last)
        part = tuple(dim if g.random.random() < 0.6 else 1 for dim in shape)
        dropped = int(g.random.integers(0, len(shape)))
        operands = [g.positive(*shape), g.positive(*part[dropped:])]
        refused += _runs((1,) * dropped + part[dropped:], shape) > 3
        outputs.append(g.op(kind, *(operands[::-1] if g.random.random() < 0.5 else operands)))
    left = {name: "far apart"} if refused else {}
    check(g, *outputs, steps={"binary": len(outputs) - refused}, fallbacks=left)


def _runs(operand: tuple, dst: tuple) -> int:
    flags = [size == extent for size, extent in zip(operand, dst, strict=True) if extent != 1]
    return 1 + sum(a != b for a, b in itertools.pairwise(flags))


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min"])
def test_several_operands(kind):
    g, outputs = Graph(), []
    for count in (1, 2, 3, 4):
        outputs.append(g.op(kind, *[g.op("Tanh", g.input(2, 17, 5, 5)) for _ in range(count)]))
    check(g, *outputs, steps={"eltwise": 1 + 1 + 2 + 3, "binary": 3})


@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_extremum_with_a_number(kind):
    g = Graph()
    step = {"Max": "eltwise", "Min": "binary"}[kind]
    check(g, g.op(kind, g.input(2, 17, 5, 5), g.scalar(0.0)), steps={step: 1})
