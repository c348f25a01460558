"""Blocks of networks as exporters write them: separable convolutions, windows, pyramids, heads, gates."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto, helper

from . import elementwise, forms, sequences
from .graph import MOST, Graph, Tensor


def separable(g: Graph, x: Tensor) -> Tensor | None:
    """A depthwise convolution and a pointwise one, normalised, with or without expansion and residual."""
    if x.rank != 4:
        return None
    inputs, wide = x.shape[1], x.shape[1] * g.between(1, 4)
    stride = g.between(1, 2)
    image = tuple((size - 1) // stride + 1 for size in x.shape[2:])
    if prod(x.shape[2:]) * wide * x.shape[0] > MOST:
        return None
    y = x
    if wide > inputs:
        y = _activated(g, _normalised(g, _pointwise(g, y, wide)))
    size = int(g.pick([3, 5]))  # type: ignore[call-overload]
    weights = g.weights((wide, 1, size, size), size * size)
    y = g.node(
        "Conv", [y, weights], (x.shape[0], wide, *image), group=wide, strides=[stride] * 2,
        pads=[size // 2] * 4, kernel_shape=[size] * 2,
    )  # fmt: skip
    y = _activated(g, _normalised(g, y))
    if g.chance(0.4):
        y = excite_by_rows(g, y)
    y = _normalised(g, _pointwise(g, y, inputs))
    return g.node("Add", [x, y] if g.chance(0.5) else [y, x], x.shape) if stride == 1 else y


def _pointwise(g: Graph, x: Tensor, channels: int) -> Tensor:
    weights = g.weights((channels, x.shape[1], *(1,) * (x.rank - 2)), x.shape[1])
    operands = [x, weights, *([g.numbers((channels,), 0.3)] if g.chance(0.4) else [])]
    return g.node("Conv", operands, (x.shape[0], channels, *x.shape[2:]))


def _normalised(g: Graph, x: Tensor) -> Tensor:
    return elementwise.batch_normalization(g, x) if g.chance(0.7) else x


def _activated(g: Graph, x: Tensor) -> Tensor:
    if g.chance(0.4):
        return g.node("Clip", [x, forms.number(g, 0), forms.number(g, 6)], x.shape)
    return elementwise.function(g, x)


def excite_by_rows(g: Graph, x: Tensor) -> Tensor:
    """Weights of channels from a mean that becomes a row, through two dense layers and back."""
    n, channels, fewer = *x.shape[:2], max(1, x.shape[1] // 4)
    if g.chance(0.5):
        mean = forms.reduce(g, "ReduceMean", x, list(range(2, x.rank)), keeps=False)
    else:
        pooled = g.node("GlobalAveragePool", [x], (n, channels, *(1,) * (x.rank - 2)))
        mean = g.node("Flatten", [pooled], (n, channels), axis=1)
    y = g.unary("Relu", _dense(g, mean, fewer))
    y = g.unary(str(g.pick(["Sigmoid", "HardSigmoid"])), _dense(g, y, channels))
    gate = g.reshape(y, (n, channels, *(1,) * (x.rank - 2)))
    return g.node("Mul", [x, gate] if g.chance(0.5) else [gate, x], x.shape)


def _dense(g: Graph, x: Tensor, width: int) -> Tensor:
    depth = x.shape[-1]
    if x.rank == 2 and g.chance(0.5):
        operands = [x, g.weights((width, depth), depth), g.numbers((width,), 0.3)]
        return g.node("Gemm", operands, (x.shape[0], width), transB=1)
    y = g.node("MatMul", [x, g.weights((depth, width), depth)], (*x.shape[:-1], width))
    return g.node(
        "Add", [g.numbers((width,), 0.3), y] if g.chance(0.3) else [y, g.numbers((width,), 0.3)], y.shape
    )


def window_attention(g: Graph, x: Tensor) -> Tensor | None:
    """Attention inside windows of an image, which may be rolled before and rolled back behind."""
    if x.rank != 4 or x.shape[1] > 40:
        return None
    n, c, h, w = x.shape
    sizes = [size for size in (2, 3, 4, 7) if h % size == 0 and w % size == 0 and size < h]
    if not sizes:
        return None
    size = int(g.pick(sizes))  # type: ignore[call-overload]
    y = g.transpose(x, [0, 2, 3, 1])
    shift = size // 2 if g.chance(0.5) else 0
    if shift:
        y = _rolled(g, _rolled(g, y, 1, shift), 2, shift)
    y = g.reshape(y, (n, h // size, size, w // size, size, c))
    y = g.transpose(y, [0, 1, 3, 2, 4, 5])
    if g.named:  # the number of samples stays an axis of its own
        y = g.reshape(y, (n, h // size * (w // size), size * size * c))
        y = elementwise.layer_norm(g, y) or y
        y = _dense(g, y, size * size * c) if size * size * c < 600 else g.unary("Tanh", y)
    else:
        y = g.reshape(y, (n * (h // size) * (w // size), size * size, c))
        y = elementwise.layer_norm(g, y) or y
        y = sequences.attention(g, y) or y
    y = g.reshape(y, (n, h // size, w // size, size, size, c))
    y = g.reshape(g.transpose(y, [0, 1, 3, 2, 4, 5]), (n, h, w, c))
    if shift:
        y = _rolled(g, _rolled(g, y, 1, h - shift), 2, w - shift)
    y = g.transpose(y, [0, 3, 1, 2])
    return g.node("Add", [x, y], x.shape)


def _rolled(g: Graph, x: Tensor, axis: int, shift: int) -> Tensor:
    extent = x.shape[axis]
    pieces = [forms.slice_(g, x, axis, shift, extent), forms.slice_(g, x, axis, 0, shift)]
    return forms.concat(g, pieces, axis)


def pyramid(g: Graph, x: Tensor) -> list[Tensor] | None:
    """A smaller image, computed on and made larger again, beside the one it came from; both may go on."""
    if x.rank != 4 or x.shape[2] % 2 or x.shape[3] % 2 or x.size > MOST // 4:
        return None
    n, c, h, w = x.shape
    pooled = g.node("MaxPool", [x], (n, c, h // 2, w // 2), kernel_shape=[2, 2], strides=[2, 2])
    channels = int(g.pick([4, 8, 16, 17]))  # type: ignore[call-overload]
    small = _activated(g, _pointwise(g, pooled, channels))
    mode = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if g.chance(0.4):
        mode = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    large = forms.resize(g, small, [1, 1, 2, 2], **mode)
    joined = forms.concat(g, [large, x] if g.chance(0.5) else [x, large], 1)
    weights = g.weights((channels, channels + c, 3, 3), 9 * (channels + c))
    made = g.node("Conv", [joined, weights], (n, channels, h, w), pads=[1] * 4)
    return [_activated(g, made), small] if g.chance(0.5) else [made]


def detection(g: Graph, x: Tensor) -> Tensor | None:
    """A head of a detector: predictions of anchors at places, split, decoded by a grid, and joined."""
    if x.rank != 4 or prod(x.shape[2:]) > 200:
        return None
    n, _, h, w = x.shape
    anchors, width = g.between(1, 3), 5 + g.between(1, 4)
    y = _pointwise(g, x, anchors * width)
    y = g.transpose(g.reshape(y, (n, anchors, width, h, w)), [0, 1, 3, 4, 2])
    if g.chance(0.7):
        y = g.unary("Sigmoid", y)
    place, size, rest = forms.split(g, y, 4, [2, 2, width - 4])
    grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1)[None, None].astype("float32")
    place = g.node("Add", [place, g.constant(grid)], place.shape)
    place = g.node("Mul", [place, forms.number(g, 1 / max(h, w))], place.shape)
    squared = g.node("Pow", [size, forms.number(g, 2)], size.shape)
    size = g.node("Mul", [squared, g.positive((1, anchors, 1, 1, 2))], size.shape)
    y = forms.concat(g, [place, size, rest], 4)
    return g.reshape(y, (n, anchors * h * w, width))


def shared_weights(g: Graph, x: Tensor) -> list[Tensor] | None:
    """The same weights on two values: of a tower for each of several levels, or a layer used twice."""
    others = [y for y in g.values if y.rank == x.rank and y.name != x.name]
    if x.rank == 4:
        fitting = [y for y in others if y.shape[1] == x.shape[1]] or [x]
        other = g.pick(fitting)
        width = int(g.pick([4, 8, 16, 17]))  # type: ignore[call-overload]
        operands = [g.weights((width, x.shape[1], 3, 3), 9 * x.shape[1]), g.numbers((width,), 0.3)]
        return [
            g.unary("Relu", g.node("Conv", [y, *operands], (y.shape[0], width, *y.shape[2:]), pads=[1] * 4))
            for y in (x, other)
            if y.size < MOST // width  # type: ignore[attr-defined]
        ]  # type: ignore[return-value]
    if x.rank < 2 or x.shape[-1] > 512:
        return None
    fitting = [y for y in others if y.shape[-1] == x.shape[-1]]
    if fitting and g.chance(0.7):
        weights = g.weights((x.shape[-1], 16), x.shape[-1])
        pair = (x, g.pick(fitting))
        return [g.node("MatMul", [y, weights], (*y.shape[:-1], 16)) for y in pair]  # type: ignore[attr-defined]
    weights = g.weights((x.shape[-1],) * 2, x.shape[-1])
    y = g.unary("Tanh", g.node("MatMul", [x, weights], x.shape))
    return [g.node("MatMul", [y, weights], x.shape)]


def patches(g: Graph, x: Tensor) -> Tensor | None:
    """An image as rows of patches, with a class token and places, as vision transformers begin."""
    if x.rank != 4:
        return None
    sizes = [size for size in (2, 4) if x.shape[2] % size == 0 and x.shape[3] % size == 0]
    if not sizes:
        return None
    size, width = int(g.pick(sizes)), int(g.pick([8, 16, 24]))  # type: ignore[call-overload]
    n, c, h, w = x.shape
    weights = g.weights((width, c, size, size), c * size * size)
    count = h // size * (w // size)
    operands = [x, weights, g.numbers((width,), 0.3)]
    y = g.node("Conv", operands, (n, width, h // size, w // size), strides=[size] * 2)
    y = g.transpose(g.reshape(y, (n, width, count)), [0, 2, 1])
    if not g.named and g.chance(0.5):
        token = g.numbers((1, 1, width))
        token = g.node("Expand", [token, g.integers(n, 1, width)], (n, 1, width))
        y, count = forms.concat(g, [token, y], 1), count + 1
    return g.node("Add", [y, g.numbers((1, count, width), 0.3)], y.shape)


def gated(g: Graph, x: Tensor) -> Tensor | None:
    """Half of the features scaled by a function of the other half."""
    axis = 1 if x.rank == 4 else x.rank - 1
    if x.rank < 2 or x.shape[axis] % 2 or (g.named and axis == 0):
        return None
    first, second = forms.split(g, x, axis, [x.shape[axis] // 2] * 2)
    gate = elementwise.function(g, second) if g.chance(0.5) else g.unary("Sigmoid", second)
    return g.node("Mul", [first, gate], first.shape)


def rotated(g: Graph, x: Tensor) -> Tensor | None:
    """Rotary places: x * cos + (its halves turned round) * sin."""
    if x.rank not in (3, 4) or x.shape[-1] % 2:
        return None
    half = x.shape[-1] // 2
    first, second = (forms.slice_(g, x, x.rank - 1, at, at + half) for at in (0, half))
    turned = forms.concat(g, [g.unary("Neg", second), first], x.rank - 1)
    angles = g.random.uniform(0, 3, (*(1,) * (x.rank - 2), *x.shape[-2:]))
    cos, sin = (g.constant(one.astype("float32")) for one in (np.cos(angles), np.sin(angles)))
    return g.node("Add", [g.node("Mul", [x, cos], x.shape), g.node("Mul", [turned, sin], x.shape)], x.shape)


def chosen(g: Graph, x: Tensor) -> Tensor:
    """One of two branches, by a truth that the model is built with, or computes."""
    if g.chance(0.5):
        truth = g.node("Identity", [g.constant(np.array(g.chance(0.5)))], (), "bool")
    else:
        mean = forms.reduce(g, "ReduceMean", x, list(range(x.rank)), keeps=False)
        truth = g.node("Greater", [mean, forms.number(g, 0)], (), "bool")
    branches = []
    for operator in ("Tanh", "Neg"):
        result = f"{x.name}_{operator.lower()}_{len(g.nodes)}"
        node = helper.make_node(operator, [x.name], [result])
        value = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        branches.append(helper.make_graph([node], operator.lower(), [], [value]))
    g.reads(x)
    return g.node("If", [truth], x.shape, then_branch=branches[0], else_branch=branches[1])
