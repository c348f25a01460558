"""Small networks of the kinds that users bring, as exporters write them, with dimensions that have names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.append(str(Path(__file__).resolve().parent / "operators"))
from onnx_node import Graph

Feed = dict[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """A model, and inputs for each set of sizes of its named dimensions."""

    model: onnx.ModelProto
    feeds: list[Feed] = field(default_factory=list)


def _network(
    g: Graph, outputs: list[str], names: Mapping[str, Mapping[int, str]] | None = None, sizes: Any = ({},)
) -> Network:
    """The graph's network; ``names`` are those of axes by input, whose sizes are drawn anew for each feed."""
    model = g.model(*outputs)
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    for value in model.graph.input:
        for axis, name in (names or {}).get(value.name, {}).items():
            value.type.tensor_type.shape.dim[axis].dim_param = name
    return Network(model, [_fed(g, names or {}, one) for one in sizes])


def _fed(g: Graph, names: Mapping[str, Mapping[int, str]], sizes: Mapping[str, int]) -> Feed:
    feed = {}
    for name, array in g.inputs.items():
        shape = list(array.shape)
        for axis, dimension in names.get(name, {}).items():
            shape[axis] = sizes[dimension]
        if array.dtype == np.float32:
            feed[name] = g.random.standard_normal(shape).astype("float32")
        else:
            feed[name] = g.random.integers(0, int(array.max()) + 1, shape).astype(array.dtype)
    return feed


def _dense(g: Graph, x: str, depth: int, width: int, activation: str = "") -> str:
    y = g.op(
        "MatMul", x, g.constant(data=g.random.standard_normal((depth, width)).astype("f4") * depth**-0.5)
    )
    y = g.op("Add", y, g.constant(width))
    return g.op(activation, y) if activation else y


def _norm(g: Graph, x: str, width: int) -> str:
    return g.op("LayerNormalization", x, g.vector(width), g.constant(width), axis=-1, epsilon=1e-5)


def speech() -> Network:
    """Spectra through strided convolutions and two-way LSTMs to scores of letters."""
    g = Graph(1)
    x = g.input(2, 1, 24, 40)
    y = g.op("Relu", g.batch_norm(g.conv(x, 1, 8, strides=[2, 2]), 8))
    y = g.op("Relu", g.batch_norm(g.conv(y, 8, 12, strides=[2, 1]), 12))
    y = g.op("Transpose", y, perm=[3, 0, 1, 2])  # time, sample, channels, bands
    y = g.op("Reshape", y, g.ints(0, 0, -1))
    for depth in (72, 32):
        weights = [
            g.constant(data=g.random.standard_normal((2, 64, n)).astype("f4") * 0.2) for n in (depth, 16)
        ]
        bias = g.constant(data=g.random.standard_normal((2, 128)).astype("f4") * 0.1)
        y = g.op("LSTM", y, *weights, bias, hidden_size=16, direction="bidirectional")
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    y = g.op("LogSoftmax", _dense(g, y, 32, 29), axis=-1)
    return _network(
        g, [y], {"x0": {0: "n", 3: "t"}}, [{"n": n, "t": t} for n, t in ((1, 9), (3, 40), (2, 17))]
    )


def segmentation() -> Network:
    """A U-Net on images of any size that is a multiple of four."""
    g = Graph(2)
    x = g.input(1, 3, 32, 32)
    skips, y, channels = [], x, 3
    for width in (8, 16):
        for _ in range(2):
            y, channels = g.op("Relu", g.batch_norm(g.conv(y, channels, width), width)), width
        skips.append((y, width))
        y = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y, channels = g.op("Relu", g.conv(y, 16, 32)), 32
    for (skip, width), up in zip(reversed(skips), ("turned", "resized"), strict=True):
        if up == "turned":
            y = g.op("ConvTranspose", y, g.constant(channels, width, 2, 2), g.constant(width), strides=[2, 2])
        else:
            scales = g.constant(data=np.float32([1, 1, 2, 2]))
            y = g.op("Resize", y, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
            y = g.conv(y, channels, width, kernel=1)
        y, channels = g.op("Concat", skip, y, axis=1), width
        y = g.op("Relu", g.batch_norm(g.conv(y, 2 * width, width), width))
    y = g.op("Softmax", g.conv(y, 8, 5, kernel=1), axis=1)
    sizes = [dict(zip("nhw", one, strict=True)) for one in ((1, 32, 32), (2, 20, 44), (3, 8, 12))]
    return _network(g, [y, g.op("ArgMax", y, axis=1, keepdims=0)], {"x0": {0: "n", 2: "h", 3: "w"}}, sizes)


def detector() -> Network:
    """Two levels of a pyramid with one head for both, decoded, joined, and the best hundredth picked."""
    g = Graph(3)
    x = g.input(1, 3, 48, 48)
    silu = lambda v: g.op("Mul", v, g.op("Sigmoid", v))  # noqa: E731
    a = silu(g.conv(x, 3, 16, strides=[2, 2]))
    b = silu(g.conv(a, 16, 24, strides=[2, 2]))
    c = silu(g.conv(b, 24, 32, strides=[2, 2]))
    up = g.op("Resize", c, "", g.constant(data=np.float32([1, 1, 2, 2])), mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    b = silu(g.conv(g.op("Concat", up, b, axis=1), 56, 24, kernel=1))
    c = g.conv(c, 32, 24, kernel=1)
    weights, bias = g.constant(3 * 9, 24, 3, 3), g.constant(27)
    rows = []
    for level, size in ((b, 12), (c, 6)):
        y = g.op("Conv", level, weights, bias, pads=[1] * 4)
        y = g.op("Reshape", y, g.ints(1, 3, 9, size, size))
        y = g.op("Sigmoid", g.op("Transpose", y, perm=[0, 1, 3, 4, 2]))
        place, extent, rest = g.ops("Split", 3, y, g.ints(2, 2, 5), axis=4)
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1)[None, None].astype("float32")
        place = g.op(
            "Mul", g.op("Add", g.op("Mul", place, g.scalar(2)), g.constant(data=grid - 0.5)), g.scalar(8)
        )
        anchors = g.constant(data=g.random.uniform(4, 30, (1, 3, 1, 1, 2)).astype("float32"))
        extent = g.op("Mul", g.op("Pow", g.op("Mul", extent, g.scalar(2)), g.scalar(2)), anchors)
        rows.append(g.op("Reshape", g.op("Concat", place, extent, rest, axis=4), g.ints(1, -1, 9)))
    y = g.op("Concat", *rows, axis=1)
    score = g.op(
        "Mul", *(g.op("Slice", y, g.ints(at), g.ints(end), g.ints(2)) for at, end in ((4, 5), (5, 9)))
    )
    best = g.op("ReduceMax", score, axes=[2], keepdims=0)
    values, places = g.ops("TopK", 2, best, g.ints(5), axis=1)
    picked = g.op("Gather", g.op("Squeeze", y, g.ints(0)), g.op("Squeeze", places, g.ints(0)), axis=0)
    return _network(g, [y, values, places, picked])


def recommender() -> Network:
    """Tables of ids, a bag of ids with a mask, numbers, products of all pairs, and a tower with two heads."""
    g = Graph(4)
    single = g.input(data=g.random.integers(0, 50, (8, 3)))
    bag = g.input(data=g.random.integers(0, 40, (8, 6)))
    mask = g.input(data=g.random.integers(0, 2, (8, 6)))
    numbers = g.input(8, 7)
    parts = []
    for at in range(3):
        ids = g.op("Gather", single, g.constant(data=np.array(at)), axis=1)
        parts.append(g.op("Gather", g.constant(50, 16), ids))
    weights = g.op("Cast", mask, to=1)
    rows = g.op("Mul", g.op("Gather", g.constant(40, 16), bag), g.op("Unsqueeze", weights, g.ints(2)))
    count = g.op("Max", g.op("ReduceSum", weights, g.ints(1), keepdims=1), g.scalar(1))
    parts.append(g.op("Div", g.op("ReduceSum", rows, g.ints(1), keepdims=0), count))
    parts.append(_dense(g, _dense(g, numbers, 7, 32, "Relu"), 32, 16, "Relu"))
    stacked = g.op("Concat", *(g.op("Unsqueeze", one, g.ints(1)) for one in parts), axis=1)
    pairs = g.op("MatMul", stacked, g.op("Transpose", stacked, perm=[0, 2, 1]))
    lower = np.ravel_multi_index(np.tril_indices(5, -1), (5, 5)).astype("int64")
    pairs = g.op("Gather", g.op("Reshape", pairs, g.ints(-1, 25)), g.constant(data=lower), axis=1)
    y = _dense(g, g.op("Concat", parts[-1], pairs, axis=1), 26, 48, "Relu")
    click = g.op("Sigmoid", _dense(g, y, 48, 1))
    price = g.op("Softplus", _dense(g, y, 48, 1))
    names = {name: {0: "n"} for name in (single, bag, mask, numbers)}
    return _network(g, [g.op("Squeeze", click, g.ints(1)), price], names, [{"n": n} for n in (1, 8, 19)])


def decoder() -> Network:
    """One step of a small language model: RMS norms, rotary places, shared heads, a cache of any length."""
    g = Graph(5)
    heads, shared, depth, width = 4, 2, 8, 32
    ids = g.input(data=g.random.integers(0, 60, (1, 3)))
    places = g.input(data=g.random.integers(0, 20, (1, 3)))
    past = [g.input(1, shared, 5, depth) for _ in range(2)]
    x, given = g.op("Gather", g.constant(60, width), ids), []

    def norm(v: str) -> str:
        mean = g.op("ReduceMean", g.op("Pow", v, g.scalar(2)), axes=[-1])
        scale = g.op("Div", v, g.op("Sqrt", g.op("Add", mean, g.scalar(1e-6))))
        return g.op("Mul", g.vector(width), scale)

    def split(v: str, count: int) -> str:
        rows = g.op(
            "MatMul", v, g.constant(data=g.random.standard_normal((width, count * depth)).astype("f4") * 0.2)
        )
        return g.op("Transpose", g.op("Reshape", rows, g.ints(0, 0, count, depth)), perm=[0, 2, 1, 3])

    half = depth // 2
    speeds = g.constant(data=(10000.0 ** -(np.arange(half) / half)).astype("float32")[None, None])
    angles = g.op("Mul", g.op("Cast", g.op("Unsqueeze", places, g.ints(2)), to=1), speeds)
    angles = g.op("Unsqueeze", g.op("Concat", angles, angles, axis=-1), g.ints(1))
    cos, sin = g.op("Cos", angles), g.op("Sin", angles)

    def rotated(v: str) -> str:
        one, two = (
            g.op("Slice", v, g.ints(at), g.ints(end), g.ints(3)) for at, end in ((0, half), (half, 2**31))
        )
        turned = g.op("Concat", g.op("Neg", two), one, axis=-1)
        return g.op("Add", g.op("Mul", v, cos), g.op("Mul", turned, sin))

    y = norm(x)
    query, key, value = rotated(split(y, heads)), rotated(split(y, shared)), split(y, shared)
    key, value = (g.op("Concat", old, new, axis=2) for old, new in zip(past, (key, value), strict=True))
    given += [key, value]

    def repeated(v: str) -> str:
        shape = g.op("Shape", v)
        tokens = g.op("Gather", shape, g.ints(2), axis=0)
        wide = g.op("Concat", g.ints(1, shared, heads // shared), tokens, g.ints(depth), axis=0)
        return g.op(
            "Reshape", g.op("Expand", g.op("Unsqueeze", v, g.ints(2)), wide), g.ints(0, heads, -1, depth)
        )

    scores = g.op("MatMul", query, g.op("Transpose", repeated(key), perm=[0, 1, 3, 2]))
    scores = g.op("Softmax", g.op("Mul", scores, g.scalar(depth**-0.5)), axis=-1)
    y = g.op("Transpose", g.op("MatMul", scores, repeated(value)), perm=[0, 2, 1, 3])
    x = g.op("Add", x, _dense(g, g.op("Reshape", y, g.ints(0, 0, width)), width, width))
    y = norm(x)
    gate = _dense(g, y, width, 48)
    y = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), _dense(g, y, width, 48))
    x = norm(g.op("Add", x, _dense(g, y, 48, width)))
    names = {ids: {1: "t"}, places: {1: "t"}, past[0]: {2: "p"}, past[1]: {2: "p"}}
    sizes = [{"t": t, "p": p} for t, p in ((1, 5), (3, 1), (4, 20))]
    return _network(g, [_dense(g, x, width, 60), *given], names, sizes)


def phone() -> Network:
    """Inverted bottlenecks with squeeze-and-excite and hard swish, a channel shuffle, and a classifier."""
    g = Graph(6)
    y = g.op("HardSwish", g.batch_norm(g.conv(g.input(2, 3, 24, 24), 3, 16, strides=[2, 2]), 16))
    for wide in (32, 48):
        z = g.op("HardSwish", g.batch_norm(g.conv(y, 16, wide, kernel=1), wide))
        z = g.op("HardSwish", g.batch_norm(g.conv(z, wide, wide, kernel=5, groups=wide), wide))
        s = g.op("Relu", g.conv(g.op("GlobalAveragePool", z), wide, 8, kernel=1))
        z = g.op("Mul", z, g.op("HardSigmoid", g.conv(s, 8, wide, kernel=1), alpha=1 / 6))
        y = g.op("Add", y, g.batch_norm(g.conv(z, wide, 16, kernel=1), 16))
    y = g.op("Transpose", g.op("Reshape", y, g.ints(0, 4, 4, 12, 12)), perm=[0, 2, 1, 3, 4])
    y = g.op("Relu", g.conv(g.op("Reshape", y, g.ints(0, 16, 12, 12)), 16, 32, groups=4))
    y = g.op("Flatten", g.op("GlobalAveragePool", y), axis=1)
    y = g.op("Gemm", y, g.constant(10, 32), g.constant(10), transB=1)
    return _network(g, [y], {"x0": {0: "n"}}, [{"n": n} for n in (1, 2, 5)])


def forecast() -> Network:
    """Causal dilated convolutions with gates and skips, and a head for each quantile."""
    g = Graph(7)
    x = g.input(2, 4, 32)
    y, skips = g.op("Conv", x, g.constant(12, 4, 1), g.constant(12)), []
    for dilation in (1, 2, 4):
        padded = g.op("Pad", y, g.ints(0, 0, 2 * dilation, 0, 0, 0))
        z = g.op("Conv", padded, g.constant(24, 12, 3), g.constant(24), dilations=[dilation])
        one, two = g.ops("Split", 2, z, g.ints(12, 12), axis=1)
        z = g.op("Mul", g.op("Tanh", one), g.op("Sigmoid", two))
        skips.append(g.op("Conv", z, g.constant(10, 12, 1)))
        y = g.op("Add", y, g.op("Conv", z, g.constant(12, 12, 1), g.constant(12)))
    y = g.op("Relu", g.op("Sum", *skips))
    last = g.op("Squeeze", g.op("Slice", y, g.ints(-1), g.ints(2**31), g.ints(-1)), g.ints(-1))
    heads = [_dense(g, last, 10, 6) for _ in range(3)]
    middle = g.op("Sub", heads[1], g.op("Softplus", heads[0]))
    high = g.op("Add", heads[1], g.op("Softplus", heads[2]))
    return _network(
        g,
        [middle, heads[1], high],
        {"x0": {0: "n", 2: "t"}},
        [{"n": n, "t": t} for n, t in ((1, 7), (4, 32))],
    )


def graph_network() -> Network:
    """Messages along edges, added up at nodes, over any number of edges; then a mean over all nodes."""
    g = Graph(8)
    nodes, edges = g.input(9, 6), g.input(data=g.random.integers(0, 9, (2, 14)))
    source, target = (g.op("Gather", edges, g.constant(data=np.array(at)), axis=0) for at in (0, 1))
    x = _dense(g, nodes, 6, 16, "Relu")
    for _ in range(2):
        pair = g.op("Concat", g.op("Gather", x, source), g.op("Gather", x, target), axis=1)
        message = _dense(g, pair, 32, 16, "Relu")
        zero = g.constant(data=np.zeros((9, 16), "float32"))
        total = g.op("ScatterND", zero, g.op("Unsqueeze", target, g.ints(1)), message, reduction="add")
        x = _norm(g, g.op("Add", x, total), 16)
    y = _dense(g, g.op("ReduceMean", x, axes=[0], keepdims=1), 16, 3)
    return _network(g, [x, g.op("Softmax", y, axis=-1)], {edges: {1: "e"}}, [{"e": e} for e in (1, 14, 33)])


def enlarger() -> Network:
    """A picture made four times as large: PReLUs, a residual, depth to space, beside cubic interpolation."""
    g = Graph(9)
    x = g.input(1, 3, 10, 12)
    slopes = lambda: g.constant(data=g.random.uniform(0, 0.4, (16, 1, 1)).astype("float32"))  # noqa: E731
    first = y = g.op("PRelu", g.conv(x, 3, 16, kernel=5), slopes())
    for _ in range(2):
        y = g.op("Add", y, g.conv(g.op("PRelu", g.conv(y, 16, 16), slopes()), 16, 16))
    y = g.conv(g.op("Add", y, first), 16, 48)
    y = g.op("DepthToSpace", y, blocksize=4, mode="CRD")
    scales = g.constant(data=np.float32([1, 1, 4, 4]))
    z = g.op("Resize", x, "", scales, mode="cubic", coordinate_transformation_mode="half_pixel")
    y = g.op("Clip", g.op("Add", y, z), g.scalar(-1.5), g.scalar(1.5))
    return _network(g, [y], {"x0": {0: "n", 2: "h", 3: "w"}},
                    [dict(zip("nhw", one, strict=True)) for one in ((1, 10, 12), (2, 7, 5))])  # fmt: skip


def captioner() -> Network:
    """Patches of an image, a class token, attention behind a mask of truths, and a choice by its output."""
    g = Graph(10)
    x, mask = g.input(2, 3, 16, 16), g.input(data=g.random.integers(0, 2, (2, 17)))
    y = g.op("Conv", x, g.constant(24, 3, 4, 4), g.constant(24), strides=[4, 4])
    y = g.op("Transpose", g.op("Reshape", y, g.ints(0, 24, -1)), perm=[0, 2, 1])
    count = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1))
    token = g.op("Expand", g.constant(1, 1, 24), g.op("Concat", count, g.ints(1, 24), axis=0))
    y = g.op("Add", g.op("Concat", token, y, axis=1), g.constant(1, 17, 24))
    hidden = g.op("Equal", g.op("Unsqueeze", mask, g.ints(1, 2)), g.constant(data=np.array(0)))
    z = _norm(g, y, 24)
    parts = g.op("Reshape", _dense(g, z, 24, 72), g.ints(0, 0, 3, 2, 12))
    parts = g.op("Transpose", parts, perm=[2, 0, 3, 1, 4])
    query, key, value = (g.op("Gather", parts, g.constant(data=np.array(at)), axis=0) for at in range(3))
    scores = g.op("MatMul", g.op("Mul", query, g.scalar(12**-0.5)), g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op("Softmax", g.op("Where", hidden, g.scalar(-1e9), scores), axis=-1)
    z = g.op("Transpose", g.op("MatMul", scores, value), perm=[0, 2, 1, 3])
    y = g.op("Add", y, _dense(g, g.op("Reshape", z, g.ints(0, 0, 24)), 24, 24))
    z = _dense(g, _norm(g, y, 24), 24, 48)
    erf = g.op("Add", g.op("Erf", g.op("Div", z, g.scalar(2**0.5))), g.scalar(1))
    z = g.op("Mul", g.op("Mul", z, erf), g.scalar(0.5))
    y = _norm(g, g.op("Add", y, _dense(g, z, 48, 24)), 24)
    first = g.op("Gather", y, g.constant(data=np.array(0)), axis=1)
    scores = _dense(g, first, 24, 7)
    word = g.op("Gather", g.constant(7, 5), g.op("ArgMax", scores, axis=-1, keepdims=0))
    return _network(g, [scores, word], {x: {0: "n"}, mask: {0: "n"}}, [{"n": n} for n in (1, 2, 4)])


NETWORKS: dict[str, Callable[[], Network]] = {
    one.__name__: one
    for one in (
        speech, segmentation, detector, recommender, decoder, phone, forecast, graph_network, enlarger,
        captioner,
    )
}  # fmt: skip
