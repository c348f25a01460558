"""Activations that TVM's importer converts for some types or versions only, or with other results."""

from __future__ import annotations

from collections.abc import Callable

from tvm import relax

from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of, rank_of, shape_of
from ..numbers import constant, is_integer
from ..table import converts


@converts("PRelu")
def _prelu(emitter: Emitter, node: Node) -> Value:
    """Slopes by channel, as versions before 7 mean them."""
    slope = shape_of(node.input(1))
    rank = rank_of(node.input(0))
    if node.opset >= 7 or slope is None or len(slope) != 1 or rank is None:
        raise NotTaken
    data, slopes = emitter.tensor(node.input(0)), node.input(1)
    if slope != [1]:
        return emitter.emit(relax.op.nn.prelu(data, emitter.tensor(slopes), 1))
    slopes = emitter.tensor(emitter.reshaped(slopes, []))
    scaled = relax.op.multiply(data, slopes)
    return emitter.emit(relax.op.where(relax.op.less(data, constant(0, dtype_of(data))), scaled, data))


@converts("Elu", "Celu", "Selu", "HardSigmoid")
def _narrow_activation(emitter: Emitter, node: Node) -> Value:
    """Activations of 16 bits, computed in float32: TVM's converters mix types, and ONNX rounds once.

    So is Celu by a number below 0, for which TVM's converter clips the wrong side.
    """
    data = node.input(0)
    dtype = dtype_of(data)
    mirrored = node.op_type == "Celu" and node.attribute("alpha", 1.0) < 0
    if dtype not in ("float16", "bfloat16", "float64") and not mirrored:
        raise NotTaken
    inner = "float64" if dtype == "float64" else "float32"
    wide = emitter.tensor(data)
    if inner != dtype:
        wide = emitter.emit(relax.op.astype(wide, inner))

    def number(name: str, default: float) -> relax.Expr:
        return constant(node.attribute(name, default), inner)

    result = emitter.emit(_ACTIVATIONS[node.op_type](wide, number))
    return result if inner == dtype else emitter.emit(relax.op.astype(result, dtype))


Number = Callable[[str, float], relax.Expr]
"""An attribute or its default as a constant."""


def _exponential(x: relax.Expr, dtype: str) -> relax.Expr:
    """``exp(x) - 1`` below zero, nothing above; never too large."""
    return relax.op.subtract(relax.op.exp(relax.op.minimum(x, constant(0, dtype))), constant(1, dtype))


def _elu(x: relax.Expr, number: Number) -> relax.Expr:
    lower = relax.op.multiply(number("alpha", 1.0), _exponential(x, dtype_of(x)))
    return relax.op.add(relax.op.nn.relu(x), lower)


def _celu(x: relax.Expr, number: Number) -> relax.Expr:
    alpha, dtype = number("alpha", 1.0), dtype_of(x)
    grown = relax.op.subtract(relax.op.exp(relax.op.divide(x, alpha)), constant(1, dtype))
    lower = relax.op.minimum(relax.op.multiply(alpha, grown), constant(0, dtype))
    return relax.op.add(relax.op.nn.relu(x), lower)


def _selu(x: relax.Expr, number: Number) -> relax.Expr:
    alpha, gamma = number("alpha", 1.6732632423543772), number("gamma", 1.0507009873554805)
    both = relax.op.add(relax.op.nn.relu(x), relax.op.multiply(alpha, _exponential(x, dtype_of(x))))
    return relax.op.multiply(gamma, both)


def _hard_sigmoid(x: relax.Expr, number: Number) -> relax.Expr:
    line = relax.op.add(relax.op.multiply(x, number("alpha", 0.2)), number("beta", 0.5))
    return relax.op.clip(line, 0.0, 1.0)


_ACTIVATIONS = {"Elu": _elu, "Celu": _celu, "Selu": _selu, "HardSigmoid": _hard_sigmoid}


@converts("ThresholdedRelu")
def _thresholded_relu(emitter: Emitter, node: Node) -> Value:
    """Elements above a threshold, of any type; 0 for all others, infinities and NaN too."""
    data = emitter.tensor(node.input(0))
    dtype = dtype_of(data)
    passes = relax.op.greater(data, constant(node.attribute("alpha", 1.0), dtype))
    return emitter.emit(relax.op.where(passes, data, constant(0, dtype)))


@converts("Shrink")
def _shrink(emitter: Emitter, node: Node) -> Value:
    """Numbers nearer to 0 by a bias, 0 within a bound; whole ones by real bounds, towards zero."""
    data = emitter.tensor(node.input(0))
    dtype = dtype_of(data)
    inner = "float64" if is_integer(dtype) else dtype
    wide = data if inner == dtype else emitter.emit(relax.op.astype(data, inner))
    bound = node.attribute("lambd", 0.5)
    bias, zero = constant(node.attribute("bias", 0.0), inner), constant(0, inner)
    above, below = (
        compare(wide, constant(end, inner))
        for compare, end in ((relax.op.greater, bound), (relax.op.less, -bound))
    )
    upper = relax.op.where(above, relax.op.subtract(wide, bias), zero)
    result = emitter.emit(relax.op.where(below, relax.op.add(wide, bias), upper))
    return result if inner == dtype else emitter.emit(relax.op.astype(result, dtype))
