"""Post-ops: bias, sum, binary and eltwise behind every kind of step, in any order, and when not to fuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, computing, post_ops

ELTWISE = ("Relu", "Tanh", "Sigmoid", "Abs", "LeakyRelu", "HardSwish", "Elu", "Neg")


@pytest.mark.parametrize("layouts", ["channels_last", "blocked"])
@pytest.mark.parametrize("batch", [1, 2])
def test_residual_block_is_two_convolutions(batch, layouts):
    """conv + bn + relu, conv + bn + add + relu: one primitive each."""
    g = Graph()
    x = g.op("MaxPool", g.input(batch, 32, 8, 8), kernel_shape=[2, 2], strides=[2, 2])
    y = g.op("Relu", g.batch_norm(g.conv(x, 32, 32), 32))
    y = g.op("Relu", g.op("Add", g.batch_norm(g.conv(y, 32, 32), 32), x))
    report = check(g, y, steps={"pooling": 1, "convolution": 2}, reduction=32 * 9, layouts=layouts)
    first, second = post_ops(report, "convolution")
    assert first == ("relu",)
    assert second in (("binary add", "relu"), ("sum", "relu"))


def test_conv_bn_add_relu_is_one_convolution():
    g = Graph()
    x = g.input(1, 17, 7, 7)
    y = g.op("Relu", g.op("Add", g.batch_norm(g.conv(x, 17, 17), 17), x))
    report = check(g, y, steps={"convolution": 1}, reduction=17 * 9)
    assert len(report.regions[0].reorders) <= 2


@pytest.mark.parametrize("order", ["first", "second"])
def test_the_later_branch_takes_the_sum(order):
    g = Graph()
    x = g.input(1, 3, 7, 7)
    early = g.conv(x, 3, 17)
    late = g.op("Relu", g.conv(g.op("Relu", g.conv(x, 3, 17)), 17, 17))
    y = g.op("Relu", g.op("Add", *((early, late) if order == "first" else (late, early))))
    check(g, y, steps={"convolution": 3}, reduction=17 * 9)


def test_sum_of_a_heavy_and_a_light_branch_goes_to_the_heavy_one():
    g = Graph()
    x = g.input(1, 17, 7, 7)
    y = g.op("Add", g.conv(x, 17, 17), g.op("Tanh", x))
    report = check(g, y, steps={"convolution": 1, "eltwise": 1}, reduction=17 * 9)
    assert len(post_ops(report, "convolution")[0]) == 1


@pytest.mark.parametrize("layouts", ["channels_last", "blocked"])
def test_random_chains_behind_convolutions(layouts):
    g, outputs = Graph(), []
    for channels in (3, 16, 17, 67) * 3:
        y = g.op("Conv", g.input(2, 3, 6, 6), g.constant(channels, 3, 3, 3))
        for _ in range(int(g.random.integers(2, 7))):
            y = _random_post_op(g, y, (2, channels, 4, 4), g.random)
        outputs.append(y)
    check(g, *outputs, steps={"convolution": 12}, reduction=27, layouts=layouts)


def test_random_chains_behind_matmuls():
    g, outputs = Graph(), []
    for batch in ((), (2,), (2, 3)) * 4:
        y = g.op("MatMul", g.input(*batch, 5, 17), g.constant(17, 67))
        for _ in range(int(g.random.integers(2, 7))):
            y = _random_post_op(g, y, (*batch, 5, 67), g.random, channel=-1)
        outputs.append(y)
    check(g, *outputs, steps={"matmul": 12}, reduction=17)


def _random_post_op(g: Graph, y: str, shape: tuple, random: np.random.Generator, channel: int = 1) -> str:
    if random.random() < 0.5:
        return g.op(str(random.choice(["Relu", "Tanh", "Sigmoid", "Abs", "HardSwish"])), y)
    vector = [1] * len(shape)
    vector[channel] = shape[channel]
    operand = random.choice(["whole", "vector", "number"])
    other = {
        "whole": lambda: g.input(*shape),
        "vector": lambda: g.constant(data=random.uniform(0.5, 1.5, vector).astype("float32")),
        "number": lambda: g.scalar(float(random.uniform(0.5, 1.5))),
    }[str(operand)]()
    return g.op(str(random.choice(["Add", "Sub", "Mul", "Max", "Min"])), y, other)


# --- every kind of step, every kind of post-op ------------------------------------------------------------

Make = Callable[[Graph, int], str]


def _convolution(g: Graph, channels: int) -> str:
    return g.op("Conv", g.input(2, 3, 4, 4), g.constant(channels, 3, 1, 1))


def _deconvolution(g: Graph, channels: int) -> str:
    return g.op("ConvTranspose", g.input(2, 3, 4, 4), g.constant(3, channels, 1, 1))


def _pooling(g: Graph, channels: int) -> str:
    return g.op("AveragePool", g.input(2, channels, 8, 8), kernel_shape=[2, 2], strides=[2, 2])


def _resampling(g: Graph, channels: int) -> str:
    scales = g.constant(data=np.array((1, 1, 2, 2), "float32"))
    options = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    return g.op("Resize", g.input(2, channels, 2, 2), "", scales, **options)


def _binary(g: Graph, channels: int) -> str:
    return g.op("Mul", g.input(2, channels, 4, 4), g.input(2, channels, 4, 4))


def _eltwise(g: Graph, channels: int) -> str:
    return g.op("Abs", g.input(2, channels, 4, 4))


ROOTS: list[tuple[Make, str]] = [
    (_convolution, "convolution"),
    (_deconvolution, "deconvolution"),
    (_pooling, "pooling"),
    (_resampling, "resampling"),
    (_binary, "binary"),
    (_eltwise, "binary"),
]


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("channels", [3, 17, 64])
def test_eltwise_behind_every_kind_of_step(channels, layouts):
    g, outputs = Graph(), []
    for make, _ in ROOTS:
        y = make(g, channels)
        for name in ELTWISE[:: 1 + channels % 2]:
            y = g.op(name, y)
        outputs.append(y)
    report = check(g, *outputs, steps=Counter(kind for _, kind in ROOTS), reduction=100, layouts=layouts)
    assert all(step.post_ops for step in computing(report))


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("channels", [3, 17, 64])
def test_binary_behind_every_kind_of_step(channels, layouts):
    """A number and a vector are fused everywhere; a whole tensor but behind pooling and resampling."""
    g, outputs = Graph(), []
    for make, _ in ROOTS:
        y = g.op("Mul", g.op("Tanh", make(g, channels)), g.positive(channels, 1, 1))
        y = g.op("Add", g.op("Sub", y, g.scalar(0.2)), g.input(2, channels, 4, 4))
        outputs.append(g.op("Max", y, g.constant(channels, 1, 1)))
    steps = Counter(kind for _, kind in ROOTS) + Counter(binary=2)
    check(g, *outputs, steps=steps, reduction=100, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_other_broadcasts_are_steps_of_their_own(layouts):
    """They would make reference code of the step before: squeeze-and-excite at batch 2, say."""
    g, shapes = Graph(), [(2, 17, 1, 1), (2, 1, 4, 4), (4, 1), (4,)]
    outputs = [g.op("Mul", make(g, 17), g.input(*shape)) for make, _ in ROOTS for shape in shapes]
    kinds = [kind for make, kind in ROOTS if make is not _eltwise] + ["eltwise"]
    steps = Counter(kinds * len(shapes)) + Counter(binary=len(outputs))
    check(g, *outputs, steps=steps, reduction=100, layouts=layouts)


# --- chains ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_ten_functions_in_a_row_are_one_step(layouts):
    g = Graph()
    y = g.input(1, 3, 7, 7)
    for kind in ("Relu", "Abs", "Tanh", "Sigmoid", "HardSwish", "Sqrt", "Relu", "Tanh", "Elu", "Neg"):
        y = g.op(kind, y)
    report = check(g, y, steps={"binary": 1}, reduction=100, layouts=layouts)
    assert len(post_ops(report, "binary")[0]) == 10


def test_very_long_chains_are_cut():
    g = Graph()
    y = g.conv(g.input(1, 3, 7, 7), 3, 17)
    for kind in ("Relu", "Abs", "Tanh", "Sigmoid") * 5:
        y = g.op(kind, y)
    check(g, y, steps={"convolution": 1, "binary": 1}, reduction=100)


def test_lines_are_joined():
    """Normalizing an image by numbers: (x / 255 - 0.45) / 0.22."""
    g = Graph()
    y = g.op("Div", g.input(1, 3, 7, 7), g.scalar(255.0))
    y = g.op("Div", g.op("Sub", y, g.scalar(0.45)), g.scalar(0.22))
    report = check(g, y, steps={"binary": 1})
    assert len(post_ops(report, "binary")[0]) <= 1


def test_a_result_read_twice_is_not_fused():
    g = Graph()
    x = g.conv(g.input(1, 3, 7, 7), 3, 17)
    y = g.op("Add", g.op("Relu", x), g.op("Tanh", x))
    check(g, y, x, steps={"convolution": 1, "eltwise": 1, "binary": 1}, reduction=27)


def test_one_tensor_added_to_itself():
    g = Graph()
    x = g.conv(g.input(1, 3, 7, 7), 3, 17)
    check(g, g.op("Add", x, x), steps={"convolution": 1, "binary": 1}, reduction=27)


@pytest.mark.parametrize("kind", ["Sub", "Div"])
def test_the_second_operand_of_a_difference_is_not_fused(kind):
    g = Graph()
    x = g.op("Add", g.op("Abs", g.conv(g.input(1, 3, 7, 7), 3, 17)), g.scalar(1.0))
    y = g.op(kind, g.positive(1, 17, 7, 7), x)
    check(g, y, steps={"convolution": 1, "binary": 1}, reduction=27)


@pytest.mark.parametrize("kind", ["Sub", "Div"])
def test_a_vector_minus_a_convolution_is_fused(kind):
    g = Graph()
    x = g.op("Add", g.op("Abs", g.conv(g.input(1, 3, 7, 7), 3, 17)), g.scalar(1.0))
    y = g.op(kind, g.positive(17, 1, 1), x)
    check(g, y, steps={"convolution": 1}, reduction=27)
