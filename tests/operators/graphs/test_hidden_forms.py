"""Forms that the ONNX importer hides, and blocks of real networks, down to the number of primitives."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, computing, post_ops


def test_sum_of_two_branches_is_a_residual():
    """The importer writes Sum as a reduction over a stack."""
    g = Graph()
    x = g.input(1, 17, 7, 7)
    y = g.op("Relu", g.op("Sum", g.conv(x, 17, 17), x))
    check(g, y, steps={"convolution": 1}, reduction=17 * 9)


def test_sum_of_four_branches():
    g = Graph()
    x = g.input(1, 17, 7, 7)
    y = g.op("Sum", *[g.conv(x, 17, 17) for _ in range(4)])
    check(g, y, steps={"convolution": 4}, reduction=17 * 9)


def test_max_of_broadcast_operands():
    g = Graph()
    y = g.op("Max", g.input(2, 17, 5, 5), g.constant(17, 1, 1), g.scalar(-0.5))
    check(g, y, steps={"binary": 1})


def test_expand_in_front_of_a_binary_operator_is_its_own_broadcast():
    g = Graph()
    y = g.op("Add", g.op("Expand", g.input(1, 17, 1, 1), g.ints(2, 17, 5, 5)), g.input(2, 17, 5, 5))
    check(g, y, steps={"binary": 1})


def test_bias_as_reshape_and_add():
    g = Graph()
    bias = g.op("Reshape", g.constant(17), g.ints(1, 17, 1, 1))
    y = g.op("Add", g.op("Conv", g.input(1, 3, 7, 7), g.constant(17, 3, 3, 3)), bias)
    report = check(g, y, steps={"convolution": 1}, reduction=27)
    assert post_ops(report, "convolution") == [()]


def test_dropout_and_identity_are_nothing():
    g = Graph()
    x = g.op("Dropout", g.op("Relu", g.conv(g.input(1, 3, 7, 7), 3, 17)))
    y = g.conv(g.op("Identity", x), 17, 3)
    check(g, y, steps={"convolution": 2}, reduction=17 * 9)


def test_classifier():
    """Global pooling, flatten, Gemm with transposed weights, softmax."""
    g = Graph()
    x = g.op("GlobalAveragePool", g.op("Relu", g.conv(g.input(2, 3, 7, 7), 3, 67)))
    y = g.op("Gemm", g.op("Flatten", x), g.constant(100, 67), g.constant(100), transB=1)
    steps = {"convolution": 1, "pooling": 1, "matmul": 1, "softmax": 1}
    check(g, g.op("Softmax", y, axis=-1), steps=steps, reduction=67)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("batch", [1, 2])
def test_squeeze_and_excite(batch, layouts):
    g = Graph()
    x = g.op("Relu", g.conv(g.input(batch, 3, 7, 7), 3, 32))
    gate = g.op("Relu", g.conv(g.op("GlobalAveragePool", x), 32, 8, kernel=1))
    gate = g.op("HardSigmoid", g.conv(gate, 8, 32, kernel=1), alpha=1 / 6, beta=0.5)
    y = g.conv(g.op("Mul", x, gate), 32, 17, kernel=1)
    check(g, y, steps={"convolution": 2, "squeeze_excite": 1}, reduction=72, layouts=layouts)


@pytest.mark.parametrize("layouts", ["channels_last", "blocked"])
def test_mobilenet_v3_block(layouts):
    """Expand, depthwise, squeeze-and-excite, project, residual; hardswish spelt out with relu6."""
    g = Graph()

    def hardswish(y: str) -> str:
        relu6 = g.op("Clip", g.op("Add", y, g.scalar(3)), g.scalar(0), g.scalar(6))
        return g.op("Mul", y, g.op("Div", relu6, g.scalar(6)))

    x = g.op("MaxPool", g.input(1, 17, 6, 6), kernel_shape=[1, 1])
    y = hardswish(g.batch_norm(g.conv(x, 17, 67, kernel=1), 67))
    y = hardswish(g.batch_norm(g.conv(y, 67, 67, groups=67), 67))
    gate = g.op("Relu", g.conv(g.op("GlobalAveragePool", y), 67, 16, kernel=1))
    relu6 = g.op("Clip", g.op("Add", g.conv(gate, 16, 67, kernel=1), g.scalar(3)), g.scalar(0), g.scalar(6))
    y = g.op("Mul", y, g.op("Div", relu6, g.scalar(6)))
    y = g.op("Add", x, g.batch_norm(g.conv(y, 67, 17, kernel=1), 17))
    steps = {"pooling": 1, "convolution": 3, "squeeze_excite": 1}
    report = check(g, y, steps=steps, reduction=67, layouts=layouts)
    assert post_ops(report, "convolution")[:2] == [("hardswish",), ("hardswish",)]


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_shufflenet_unit(layouts):
    g, channels, groups = Graph(), 24, 3
    x = g.op("MaxPool", g.input(2, channels, 6, 6), kernel_shape=[1, 1])
    y = g.op("Relu", g.batch_norm(g.conv(x, channels, channels, kernel=1, groups=groups), channels))
    y = g.op("Reshape", y, g.ints(2, groups, channels // groups, 6, 6))
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), g.ints(2, channels, 6, 6))
    y = g.batch_norm(g.conv(y, channels, channels, groups=channels), channels)
    y = g.batch_norm(g.conv(y, channels, channels, kernel=1, groups=groups), channels)
    y = g.op("Relu", g.op("Add", y, x))
    steps = {"pooling": 1, "convolution": 3, "shuffle": 1}
    check(g, y, steps=steps, reduction=72, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_densenet_layer(layouts):
    """Batch norm and relu before the convolution, concatenated with what came in."""
    g = Graph()
    x = g.conv(g.input(1, 3, 6, 6), 3, 17)
    y = g.conv(g.op("Relu", g.batch_norm(x, 17)), 17, 12)
    y = g.op("Concat", x, y, axis=1)
    y = g.conv(g.op("Relu", g.batch_norm(y, 29)), 29, 12, kernel=1)
    steps = {"convolution": 3, "binary": 2, "concat": 1}
    check(g, y, steps=steps, reduction=17 * 9, layouts=layouts)


def attention(g: Graph, x: str, heads: int, depth: int, shape: tuple[int, int], mask: str | None) -> str:
    """Multi-head self-attention as an exporter writes it."""
    batch, time = shape
    width = heads * depth

    def dense(y: str) -> str:
        return g.op("Add", g.op("MatMul", y, g.constant(width, width)), g.constant(width))

    def split(y: str, axes: list[int]) -> str:
        return g.op("Transpose", g.op("Reshape", y, g.ints(batch, time, heads, depth)), perm=axes)

    q, k, v = (split(dense(x), axes) for axes in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = g.op("Div", g.op("MatMul", q, k), g.scalar(depth**0.5))
    if mask is not None:
        scores = g.op("Add", scores, mask)
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    return dense(g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(batch, time, width)))


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize(("batch", "masked"), [(1, False), (2, True)])
def test_transformer_layer(batch, masked, layouts):
    """Attention and feed-forward with gelu spelt out by Erf: nothing is left to TVM."""
    g, (time, heads, depth) = Graph(), (9, 3, 17)
    width = heads * depth
    x = g.input(batch, time, width)
    mask = None
    if masked:
        allowed = np.where(np.arange(time) < time - 2, 0.0, -1e4).astype("float32")
        mask = g.input(data=np.tile(allowed, (batch, 1, 1, 1)))

    def normalize(y: str) -> str:
        return g.op("LayerNormalization", y, g.vector(width), g.constant(width), axis=-1)

    y = g.op("Add", x, attention(g, normalize(x), heads, depth, (batch, time), mask))
    hidden = g.op("Add", g.op("MatMul", normalize(y), g.constant(width, 4 * width)), g.constant(4 * width))
    erf = g.op("Erf", g.op("Div", hidden, g.scalar(2**0.5)))
    hidden = g.op("Mul", g.op("Mul", hidden, g.op("Add", erf, g.scalar(1))), g.scalar(0.5))
    z = g.op("Add", y, g.op("Add", g.op("MatMul", hidden, g.constant(4 * width, width)), g.constant(width)))
    steps = {"layer_normalization": 2, "matmul": 6, "attention": 1}
    report = check(g, z, steps=steps, reduction=4 * width, layouts=layouts)
    assert ("gelu_erf",) in post_ops(report, "matmul")


def test_layer_norm_spelt_out_takes_scale_and_shift():
    g = Graph()
    x = g.input(2, 5, 67)
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.scalar(2)), axes=[-1])
    y = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.scalar(1e-5))))
    y = g.op("Add", g.op("Mul", y, g.vector(67)), g.constant(67))
    report = check(g, y, steps={"layer_normalization": 1}, reduction=67)
    assert len(computing(report)) == 1


def test_lrn_in_eight_operators_is_one():
    g = Graph()
    y = g.op("LRN", g.op("Relu", g.conv(g.input(1, 3, 7, 7), 3, 32)), size=5)
    check(g, y, steps={"convolution": 1, "lrn": 1}, reduction=27)


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("samples_first", [True, False])
def test_attention_whose_rows_are_places_before_samples(samples, samples_first):
    """PyTorch's ``nn.MultiheadAttention``: rows are turned around it, heads joined with samples inside."""
    places, heads, width = 7, 2, 32
    g = Graph()
    shape = (samples, places, heads * width) if samples_first else (places, samples, heads * width)
    x = g.input(*shape)
    rows = g.op("Transpose", x, perm=[1, 0, 2]) if samples_first else x
    together = g.op("Add", g.op("MatMul", rows, g.constant(64, 192)), g.constant(192))
    apart = g.op("Reshape", together, g.ints(places, samples, 3, heads * width))
    apart = g.op("Transpose", g.op("Unsqueeze", apart, g.ints(0)), perm=[3, 1, 2, 0, 4])
    apart = g.op("Squeeze", apart, g.ints(3))

    def of_heads(at: int) -> str:
        one = g.op("Gather", apart, g.constant(data=np.int64(at)), axis=0)
        joined = g.op("Reshape", one, g.ints(places, samples * heads, width))
        joined = g.op("Transpose", joined, perm=[1, 0, 2])
        return g.op("Reshape", joined, g.ints(samples, heads, places, width))

    query, key, value = map(of_heads, range(3))
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    weights = g.op("Softmax", g.op("Mul", scores, g.scalar(width**-0.5)), axis=-1)
    seen = g.op("Transpose", g.op("MatMul", weights, value), perm=[2, 0, 1, 3])
    seen = g.op("Reshape", seen, g.ints(places * samples, heads * width))
    out = g.op("Gemm", seen, g.constant(64, 64), g.constant(64), transB=1)
    out = g.op("Reshape", out, g.ints(places, samples, heads * width))
    out = g.op("Transpose", out, perm=[1, 0, 2]) if samples_first else out
    y = g.op("Softmax", g.op("Add", x, out), axis=-1)
    report = check(g, y, steps={"matmul": 4, "attention": 1, "softmax": 1}, reduction=64)
    # what attention wrote by samples is copied where what follows reads it by places
    assert sum(len(region.reorders) for region in report.regions) == (samples > 1 and not samples_first)
