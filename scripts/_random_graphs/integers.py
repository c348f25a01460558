"""Moves of quantised models: integers between conversions, scales and zero points of every kind."""

from __future__ import annotations

from math import prod

import numpy as np

from . import windows
from .graph import Graph, Tensor

_SEVEN_BITS = (-64, 64)
"""Weights of products of integers, with which onnxruntime's sums saturate nowhere, VNNI or not."""
_LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}


def rounded(g: Graph, x: Tensor) -> Tensor:
    """The numbers of 8 bits nearest to ``x``, as real numbers again."""
    return _real(g, *_quantised(g, x))


def _quantised(g: Graph, x: Tensor) -> tuple[Tensor, str, str]:
    dtype = str(g.pick(["uint8", "uint8", "int8"]))
    least, most = _LIMITS[dtype]
    zero = int(g.pick([least, (least + most + 1) // 2, g.between(least + 90, most - 90)]))  # type: ignore[call-overload]
    scale = g.constant(np.float32(g.random.uniform(0.008, 0.04)))
    number = g.constant(np.array(zero, dtype))
    return g.node("QuantizeLinear", [x, scale, number], x.shape, dtype), scale, number


def _real(g: Graph, x: Tensor, scale: str, zero: str) -> Tensor:
    return g.node("DequantizeLinear", [x, scale, zero], x.shape)


def _weights(g: Graph, shape: tuple[int, ...], depth: int, axis: int) -> str:
    """Integers with one scale, or one for each result."""
    dtype = "int8" if g.chance(0.85) else "uint8"
    least, most = _LIMITS[dtype]
    array = g.constant(g.random.integers(least, most + 1, shape).astype(dtype))
    unit = 1 / (74 * np.sqrt(max(depth, 1)))
    if g.chance(0.5):
        scale = (unit * np.exp(g.random.uniform(-0.5, 0.5, shape[axis]))).astype("float32")
        zeros = np.full(shape[axis], 0 if dtype == "int8" else 128, dtype)
    else:
        scale, zeros = np.float32(unit), np.array(0 if dtype == "int8" else 128, dtype)
    attributes = {"axis": axis} if scale.ndim else {}
    operands = [array, g.constant(scale), g.constant(zeros)]
    return g.node("DequantizeLinear", operands, shape, **attributes).name


def _bias(g: Graph, count: int) -> str:
    if g.chance(0.3):
        return g.numbers((count,), 0.5)
    array = g.constant(g.random.integers(-200, 200, count).astype("int32"))
    operands = [array, g.constant(np.float32(1 / 300))]
    return g.node("DequantizeLinear", operands, (count,)).name


def convolution(g: Graph, x: Tensor) -> Tensor | None:
    """A convolution, or a transposed one, of integers."""
    move = windows.deconvolution if g.chance(0.2) else windows.convolution
    before = len(g.nodes)
    made = move(g, x)
    if made is None:
        return None
    (node,) = g.nodes[before:]
    turned = node.op_type == "ConvTranspose"
    shape = g.shape_of(node.input[1])
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    axis = 1 if turned else 0
    if turned and groups > 1:
        return made  # one scale for each result has no axis there
    g.nodes.pop()
    depth = prod(shape) // shape[axis]
    operands = [rounded(g, x) if g.chance(0.5) else x, _weights(g, shape, depth, axis)]
    if len(node.input) > 2:
        operands.append(_bias(g, made.shape[1]))
    g.again(node, operands)
    return made


def dense(g: Graph, x: Tensor) -> Tensor | None:
    depth, width = x.shape[-1], int(g.pick([3, 16, 17, 32, 50]))  # type: ignore[call-overload]
    if depth > 4096:
        return None
    shape = (*x.shape[:-1], width)
    weights = _weights(g, (depth, width), depth, 1)
    if x.rank == 2 and g.chance(0.4):
        return g.node("Gemm", [x, weights, _bias(g, width)], shape)
    y = g.node("MatMul", [x, weights], shape)
    return g.node("Add", [y, _bias(g, width)], shape) if g.chance(0.5) else y


def activation(g: Graph, x: Tensor) -> Tensor:
    operator = str(g.pick(["Relu", "Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSwish", "Tanh"]))
    if operator == "Clip":
        return g.node("Clip", [x, g.constant(np.float32(0)), g.constant(np.float32(2))], x.shape)
    return g.unary(operator, x)


def dynamic(g: Graph, x: Tensor) -> Tensor | None:
    """A product of integers whose scale the model computes, as quantised language models have it."""
    if x.shape[-1] > 2048:
        return None
    depth, width = x.shape[-1], int(g.pick([8, 17, 32]))  # type: ignore[call-overload]
    whole, scale, zero = g.add("DynamicQuantizeLinear", [x], x.shape, (), (), dtype="uint8")
    weights = g.constant(g.random.integers(*_SEVEN_BITS, (depth, width)).astype("int8"))
    shape = (*x.shape[:-1], width)
    sums = g.node("MatMulInteger", [whole, weights, zero], shape, "int32")
    factor = g.node("Mul", [scale, g.constant(np.float32(1 / (74 * np.sqrt(depth))))], ())
    return g.node("Mul", [g.cast(sums, "float32"), factor], shape)


def linear_operator(g: Graph, x: Tensor) -> Tensor | None:
    """QLinearConv on an image, QLinearMatMul on rows."""
    whole, scale, zero = _quantised(g, x)
    middle = 0 if whole.dtype == "int8" else 128
    number = g.constant(np.array(middle + g.between(-20, 20), whole.dtype))
    target = [g.constant(np.float32(g.random.uniform(0.01, 0.03))), number]
    if x.rank == 4:
        width, inputs = int(g.pick([5, 16, 33])), x.shape[1]  # type: ignore[call-overload]
        weights = g.constant(g.random.integers(*_SEVEN_BITS, (width, inputs, 3, 3)).astype("int8"))
        unit = g.constant(np.float32(1 / (74 * np.sqrt(9 * inputs))))
        operands = [whole, scale, zero, weights, unit, g.constant(np.int8(0)), *target]
        if g.chance(0.5):
            operands.append(g.constant(g.random.integers(-2000, 2000, width).astype("int32")))
        y = g.node("QLinearConv", operands, (x.shape[0], width, *x.shape[2:]), whole.dtype, pads=[1] * 4)
    else:
        depth, width = x.shape[-1], int(g.pick([5, 16, 33]))  # type: ignore[call-overload]
        weights = g.constant(g.random.integers(*_SEVEN_BITS, (depth, width)).astype("int8"))
        unit = g.constant(np.float32(1 / (74 * np.sqrt(depth))))
        operands = [whole, scale, zero, weights, unit, g.constant(np.int8(0)), *target]
        y = g.node("QLinearMatMul", operands, (*x.shape[:-1], width), whole.dtype)
    return _real(g, y, *target)
