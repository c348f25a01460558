"""Transposed convolutions: ranks, groups, output padding, odd channels, what follows them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, post_ops

ONE = {"deconvolution": 1}


def deconvolve(
    g: Graph, shape: tuple, outputs: int, groups: int = 1, kernel: int = 3, bias: bool = True, **attrs
) -> str:
    axes = len(shape) - 2
    weights = [g.constant(shape[1], outputs // groups, *(kernel,) * axes)]
    if bias:
        weights.append(g.constant(outputs))
    return g.op("ConvTranspose", g.input(*shape), *weights, group=groups, **attrs)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_output_padding(rank):
    g, axes, outputs = Graph(), rank - 2, []
    geometry = {"strides": [2] * axes, "pads": [1] * axes + [0] * axes, "output_padding": [1] * axes}
    for batch, inputs, channels, groups in (
        (1, 3, 17, 1), (2, 17, 17, 17), (1, 32, 64, 2), (2, 6, 9, 3), (1, 67, 3, 1), (1, 1, 1, 1),
    ):  # fmt: skip
        outputs.append(deconvolve(g, (batch, inputs, *(4, 5, 3)[:axes]), channels, groups, **geometry))
    check(g, *outputs, steps={"deconvolution": len(outputs)}, reduction=67 * 3**axes)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_every_layout(layouts):
    g = Graph()
    outputs = [
        deconvolve(g, (2, inputs, 5, 6), channels, strides=[2, 1], pads=[0, 1, 1, 0])
        for inputs, channels in ((3, 17), (64, 32), (67, 1))
    ]
    check(g, *outputs, steps={"deconvolution": 3}, reduction=67 * 9, layouts=layouts)


def test_random_geometry():
    random, g, outputs = np.random.default_rng(0), Graph(), []
    for _ in range(10):
        kernel, strides = int(random.integers(2, 5)), random.integers(1, 4, 2)
        inputs, channels = random.choice([3, 17, 32, 67], 2).tolist()
        shape = (int(random.integers(1, 3)), inputs, *random.integers(5, 8, 2).tolist())
        geometry = {
            "strides": strides.tolist(),
            "pads": random.integers(0, kernel, 4).tolist(),
            "output_padding": random.integers(0, strides).tolist(),
        }
        bias = bool(random.integers(0, 2))
        outputs.append(deconvolve(g, shape, channels, kernel=kernel, bias=bias, **geometry))
    check(g, *outputs, steps={"deconvolution": 10}, reduction=67 * 16)


@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norm_and_relu_are_folded(groups):
    g = Graph()
    y = g.op("Relu", g.batch_norm(deconvolve(g, (2, 16, 5, 5), 34, groups, strides=[2, 2]), 34))
    report = check(g, y, steps=ONE, reduction=16 * 9)
    assert post_ops(report, "deconvolution") == [("relu",)]


def test_skip_connection_is_fused():
    g = Graph()
    up = deconvolve(g, (1, 32, 4, 4), 17, kernel=2, strides=[2, 2])
    y = g.op("Relu", g.op("Add", up, g.conv(g.input(1, 3, 8, 8), 3, 17)))
    check(g, y, steps={"deconvolution": 1, "convolution": 1}, reduction=32 * 4)


def test_dilation():
    g = Graph()
    y = deconvolve(g, (1, 17, 5, 5), 3, dilations=[2, 2], strides=[2, 2])
    check(g, y, steps=ONE, reduction=17 * 9)
