"""Blocks inside one region that need no way back to plain: reductions, gates, vectors, channel shuffle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from onnx_node import Graph, run, tolerance

from tvm_mxplan.testing.reference import relative_l2

Build = Callable[[Graph, str, int, int], tuple[str, int]]
"""Blocks behind an image of so many images and channels: a name, and the reorders at the model's borders."""


def squeeze_and_excite(g: Graph, src: str, batch: int, channels: int) -> tuple[str, int]:
    gate = g.op("Sigmoid", g.conv(g.op("GlobalAveragePool", src), channels, channels, kernel=1))
    return g.conv(g.op("Mul", src, gate), channels, channels), 2


def maximum_as_gate(g: Graph, src: str, batch: int, channels: int) -> tuple[str, int]:
    gate = g.op("Sigmoid", g.op("ReduceMax", src, axes=[2, 3], keepdims=1))
    return g.conv(g.op("Mul", src, gate), channels, channels), 2


def global_pooling_to_a_vector(g: Graph, src: str, batch: int, channels: int) -> tuple[str, int]:
    vector = g.op("Flatten", g.op("GlobalAveragePool", src))
    return g.op("Gemm", vector, g.constant(channels, 10), g.constant(10)), 1


def reduction_to_a_vector(g: Graph, src: str, batch: int, channels: int) -> tuple[str, int]:
    return g.op("ReduceMax", src, axes=[2, 3], keepdims=0), 1


def channel_shuffle(g: Graph, src: str, batch: int, channels: int) -> tuple[str, int]:
    split = g.op("Reshape", src, g.ints(batch, 2, channels // 2, 28, 28))
    joined = g.op("Reshape", g.op("Transpose", split, perm=[0, 2, 1, 3, 4]), g.ints(batch, channels, 28, 28))
    return g.conv(joined, channels, channels), 2


BLOCKS = [
    squeeze_and_excite,
    maximum_as_gate,
    global_pooling_to_a_vector,
    reduction_to_a_vector,
    channel_shuffle,
]


@pytest.mark.parametrize("build", BLOCKS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layouts", ["cost", "blocked"])
def test_no_reorder_but_at_the_models_borders(build: Build, batch: int, layouts: str) -> None:
    g = Graph()
    src = g.conv(g.conv(g.input(batch, 64, 28, 28), 64, 64), 64, 64)
    y, left = build(g, src, batch, 64)
    ex, actual, expected = run(g, y, layouts=layouts)
    steps = Counter(step.kind for region in ex.report.regions for step in region.steps)
    assert len(ex.report.regions) == 1 and not ex.report.fallbacks, str(ex.report)
    assert steps["convolution"] >= 2, str(ex.report)
    assert steps["reorder"] == left, str(ex.report)
    assert relative_l2(actual[0], expected[0]) <= tolerance(9 * 64)
