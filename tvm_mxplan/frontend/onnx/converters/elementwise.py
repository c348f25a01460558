"""Elementwise operators that TVM's importer converts for some types or versions only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from tvm import relax, te, tirx

from ....errors import UnsupportedError
from ..dimensions.dims import expression
from ..dimensions.restate import Demand, demanded
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of, rank_of, shape_of
from .numbers import constant, is_integer
from .table import converts

_DROPS = "drops elements at random, as in training; expected training_mode = 0"


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


@converts("Pow")
def _pow(emitter: Emitter, node: Node) -> Value:
    """Bases and exponents of different types; the base's is the result's."""
    base, exponent = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype, other = dtype_of(base), dtype_of(exponent)
    if not is_integer(dtype):
        if other == dtype:
            raise NotTaken
        return emitter.emit(relax.op.power(base, emitter.emit(relax.op.astype(exponent, dtype))))
    if is_integer(other):
        return _whole_power(emitter, base, exponent)
    wide = relax.op.power(relax.op.astype(base, "float64"), relax.op.astype(exponent, "float64"))
    return emitter.emit(relax.op.astype(emitter.emit(wide), dtype))


def _whole_power(emitter: Emitter, base: relax.Expr, exponent: relax.Expr) -> relax.Expr:
    """By squares: exact as long as the result is."""
    emit, dtype = emitter.emit, dtype_of(base)
    left = emit(relax.op.astype(exponent, dtype))
    one, result = constant(1, dtype), None
    for _ in range(6):  # exponents up to 63: beyond, only -1, 0 and 1 stay within the type
        odd = relax.op.equal(relax.op.bitwise_and(left, one), one)
        factor = emit(relax.op.where(odd, base, one))
        result = factor if result is None else emit(relax.op.multiply(result, factor))
        left = emit(relax.op.right_shift(left, one))
        base = emit(relax.op.multiply(base, base))
    assert result is not None
    return result


@converts("Mod")
def _mod(emitter: Emitter, node: Node) -> Value:
    """The remainder of floating-point numbers with the divisor's sign, as numpy has it."""
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    if is_integer(dtype) or node.attribute("fmod", 0):
        raise NotTaken
    emit = emitter.emit
    inner = "float64" if dtype == "float64" else "float32"
    x, y = (emit(relax.op.astype(value, inner)) for value in (left, right))
    zero = constant(0, inner)
    rest = emit(relax.op.mod(x, y))
    infinite = emit(relax.op.equal(relax.op.abs(y), constant(math.inf, inner)))
    finite = relax.op.less(relax.op.abs(x), constant(math.inf, inner))
    rest = emit(relax.op.where(relax.op.logical_and(infinite, finite), x, rest))
    differs = relax.op.logical_xor(relax.op.less(rest, zero), relax.op.less(y, zero))
    moved = relax.op.logical_and(relax.op.not_equal(rest, zero), differs)
    result = emit(relax.op.where(moved, relax.op.add(rest, y), rest))
    return emit(relax.op.astype(result, dtype))


@converts("Sign")
def _sign(emitter: Emitter, node: Node) -> Value:
    """Of numbers that are 0 or more, 0 and 1: TVM's kernel makes a number below 0 for any type."""
    data = emitter.tensor(node.input(0))
    dtype = dtype_of(data)
    if not dtype.startswith("uint"):
        raise NotTaken
    return emitter.emit(relax.op.minimum(data, constant(1, dtype)))


@converts("IsInf")
def _is_infinite(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    dtype = dtype_of(data)
    if dtype not in ("float32", "float64", "float16", "bfloat16"):
        raise NotTaken
    if dtype == "bfloat16":
        data, dtype = emitter.emit(relax.op.astype(data, "float32")), "float32"
    found = [
        relax.op.equal(data, constant(infinity, dtype))
        for name, infinity in (("detect_positive", math.inf), ("detect_negative", -math.inf))
        if node.attribute(name, 1)
    ]
    if not found:
        shape = relax.ShapeExpr([expression(dim) for dim in emitter.shape(data)])
        return emitter.emit(relax.op.full(shape, constant(False, "bool")))
    return emitter.emit(found[0] if len(found) == 1 else relax.op.logical_or(*found))


@converts("BitShift")
def _bit_shift(emitter: Emitter, node: Node) -> Value:
    """Shifts by the width and more leave nothing but the sign; so do those by less than 0, as in numpy."""
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    emit = emitter.emit
    last, zero = constant(np.iinfo(dtype).bits - 1, dtype), constant(0, dtype)
    outside = relax.op.greater(right, last)
    if np.dtype(dtype).kind == "i":
        outside = relax.op.logical_or(outside, relax.op.less(right, zero))
    outside = emit(outside)
    amount = emit(relax.op.where(outside, last, right))
    if node.text("direction") == "LEFT":
        return emit(relax.op.where(outside, zero, relax.op.left_shift(left, amount)))
    shifted = emit(relax.op.right_shift(left, amount))
    return shifted if np.dtype(dtype).kind == "i" else emit(relax.op.where(outside, zero, shifted))


@converts("BitCast")
def _bit_cast(emitter: Emitter, node: Node) -> Value:
    """The same bits as another type of as many."""
    data = emitter.tensor(node.input(0))
    to = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]))
    of = np.dtype(dtype_of(data))
    if of.itemsize != to.itemsize:
        raise NotTaken
    if of.kind == "b" or to.kind == "b":  # a byte of 0 or 1
        return emitter.emit(relax.op.astype(data, str(to)))

    def kernel(tensor: te.Tensor) -> te.Tensor:
        return te.compute(tensor.shape, lambda *index: tirx.reinterpret(str(to), tensor(*index)), "bit_cast")

    return emitter.builder.emit_te(kernel, data, primfunc_name_hint="bit_cast")


@converts("Dropout")
def _dropout(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """The operand as it is, and a mask of ones: nothing is dropped when a model is not trained."""
    data = node.input(0)
    training = node.input(2) if node.opset >= 12 else None
    if isinstance(training, np.ndarray) and training.reshape(-1)[0]:
        ratio = node.input(1)
        if not isinstance(ratio, np.ndarray) or ratio.reshape(-1)[0]:
            raise UnsupportedError(f"{emitter.importer.called(node)}: {_DROPS}")
    elif isinstance(training, relax.Expr):
        data = _unless_training(emitter, node, training)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (data,)
    dtype = "bool" if node.opset >= 10 else dtype_of(data)
    shape = relax.ShapeExpr([expression(dim) for dim in emitter.shape(data)])
    return data, emitter.emit(relax.op.full(shape, constant(1, dtype)))


def _unless_training(emitter: Emitter, node: Node, training: relax.Expr) -> relax.Expr:
    """The operand, behind a check that has the model stop where it is told to drop elements."""
    ratio = node.input(1)
    drops = emitter.emit(relax.op.astype(training, "int64"))
    if ratio is not None:
        some = relax.op.not_equal(emitter.tensor(ratio), constant(0, dtype_of(ratio)))
        drops = emitter.emit(relax.op.multiply(drops, relax.op.astype(some, "int64")))
    (found,) = emitter.dims(emitter.emit(relax.op.reshape(drops, [1])))
    words = f"{emitter.importer.called(node)}: {_DROPS}"
    met = tirx.EQ(expression(found), tirx.const(0, "int64"))
    return demanded(emitter, node.input(0), Demand(met, words, "UnsupportedError"))


@converts("SpaceToDepth")
def _space_to_depth(emitter: Emitter, node: Node) -> Value:
    """Blocks as channels before or behind those of the image."""
    if node.text("mode", "DCR") == "DCR":
        raise NotTaken
    data = emitter.tensor(node.input(0))
    block = node.attributes["blocksize"]
    n, c, h, w = emitter.shape(data)
    if not all(isinstance(dim, int) for dim in (c, h, w)):
        raise NotTaken
    parts = emitter.reshaped(data, [n, c, h // block, block, w // block, block])
    moved = emitter.emit(relax.op.permute_dims(parts, [0, 1, 3, 5, 2, 4]))
    return emitter.reshaped(moved, [n, c * block * block, h // block, w // block])


@converts("MatMul")
def _narrow_product(emitter: Emitter, node: Node) -> Value:
    """Products of 16 bits with sums in float32; TVM's own sums are as narrow as the operands."""
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    if dtype not in ("float16", "bfloat16"):
        raise NotTaken
    product = emitter.emit(relax.op.matmul(left, right, out_dtype="float32"))
    return emitter.emit(relax.op.astype(product, dtype))
