"""Convolutions: ranks, groups, dilation, strides, asymmetric padding, bias, folded pads and batch norms."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, post_ops

CHANNELS = (1, 3, 17, 64, 67, 100)
ONE = {"convolution": 1}


def draw(rank: int, case: int) -> dict:
    """A random convolution without groups; what does not matter to it is small."""
    random = np.random.default_rng([rank, case])
    axes = rank - 2
    kernel = random.integers(1, 4, axes)
    dilation = random.integers(1, 3, axes)
    reach = (kernel - 1) * dilation
    batch, inputs, sizes = random.integers(1, 4), random.choice(CHANNELS), random.integers(7, 10, axes)
    return {
        "shape": (int(batch), int(inputs), *sizes.tolist()),
        "outputs": int(random.choice(CHANNELS)),
        "kernel_shape": kernel.tolist(),
        "dilations": dilation.tolist(),
        "strides": random.integers(1, 3, axes).tolist(),
        "pads": random.integers(0, np.concatenate([reach, reach]) + 1).tolist(),
        "bias": bool(random.integers(0, 2)),
    }


def convolve(
    g: Graph, shape: tuple, outputs: int, kernel_shape: list, bias: bool = True, groups: int = 1, **attrs
) -> str:
    weights = [g.constant(outputs, shape[1] // groups, *kernel_shape)]
    if bias:
        weights.append(g.constant(outputs))
    return g.op("Conv", g.input(*shape), *weights, group=groups, **attrs)


def terms(shape: tuple, kernel_shape: list) -> int:
    return shape[1] * int(np.prod(kernel_shape))


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_random_geometry(rank):
    g, drawn = Graph(rank), [draw(rank, case) for case in range(10)]
    outputs = [convolve(g, **one) for one in drawn]
    longest = max(terms(one["shape"], one["kernel_shape"]) for one in drawn)
    check(g, *outputs, steps={"convolution": len(drawn)}, reduction=longest)


GROUPS = [
    (3, 17, 1), (17, 67, 1), (64, 32, 1), (24, 48, 2), (6, 9, 3), (17, 17, 17), (64, 64, 64), (67, 134, 67),
]  # fmt: skip


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_groups(rank, layouts):
    g, axes, outputs = Graph(), rank - 2, []
    for inputs, channels, groups in GROUPS:
        shape, pads = (2, inputs, *(9, 6, 5)[:axes]), [1] * axes + [2] * axes
        outputs.append(
            convolve(g, shape, channels, [3] * axes, groups=groups, strides=[2, 1, 1][:axes], pads=pads)
        )
    check(g, *outputs, steps={"convolution": len(GROUPS)}, reduction=64 * 27, layouts=layouts)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad_is_padding_of_the_convolution(auto_pad):
    g, shape = Graph(), (1, 17, 10, 11)
    outputs = [convolve(g, shape, 3, [3, 4], auto_pad=auto_pad, strides=[stride] * 2) for stride in (1, 2, 3)]
    check(g, *outputs, steps={"convolution": 3}, reduction=17 * 12)


def test_pad_of_zeros_is_padding_of_the_convolution():
    g = Graph()
    padded = g.op("Pad", g.input(1, 17, 7, 7), g.ints(0, 0, 1, 2, 0, 0, 0, 3))
    check(g, g.conv(padded, 17, 67), steps=ONE, reduction=17 * 9)


@pytest.mark.parametrize(
    ("pads", "value"),
    [((0, 0, 1, 1, 0, 0, 1, 1), 0.5), ((0, 1, 0, 0, 0, 2, 0, 0), 0.0), ((1, 0, 0, 0, 0, 0, 0, 0), 0.0)],
)
def test_other_pads_stay(pads, value):
    g = Graph()
    padded = g.op("Pad", g.input(2, 17, 7, 7), g.ints(*pads), g.scalar(value))
    channels = 17 + pads[1] + pads[5]
    check(g, g.conv(padded, channels, 3), steps={"convolution": 1, "pad": 1}, reduction=20 * 9)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_batch_norm_is_folded(rank):
    g, outputs = Graph(), []
    for groups in (1, 17):
        y = convolve(g, (2, 17, *(5,) * (rank - 2)), 34, [2] * (rank - 2), groups=groups)
        outputs.append(g.batch_norm(y, 34))
    report = check(g, *outputs, steps={"convolution": 2}, reduction=17 * 8)
    assert post_ops(report, "convolution") == [(), ()]


def test_scales_and_shifts_by_numbers_are_folded():
    g = Graph()
    y = g.op("Div", g.op("Sub", g.conv(g.input(1, 3, 7, 7), 3, 17), g.scalar(0.3)), g.scalar(1.7))
    report = check(g, y, steps=ONE, reduction=27)
    assert post_ops(report, "convolution") == [()]


def test_division_by_zero_is_not_folded():
    """Weights of infinity would make NaN of the zeros that they meet."""
    g = Graph()
    divisor = g.constant(data=np.array([1.0, 0.0, 2.0], "float32").reshape(3, 1, 1))
    y = g.op("Div", g.op("Add", g.op("Abs", g.conv(g.input(1, 3, 5, 5), 3, 3)), g.scalar(1.0)), divisor)
    z = g.op("Min", y, g.scalar(100.0))
    check(g, z, steps=ONE, reduction=27)


def test_weights_that_are_an_input():
    g = Graph()
    y = g.op("Conv", g.input(2, 17, 7, 7), g.input(67, 17, 3, 3), g.input(67))
    check(g, y, steps=ONE, reduction=17 * 9)


def test_one_weight_for_two_convolutions():
    g = Graph()
    weights, x = g.constant(17, 17, 3, 3), g.input(1, 17, 9, 9)
    y = g.op("Conv", g.op("Conv", x, weights), weights)
    check(g, y, steps={"convolution": 2}, reduction=17 * 9)
