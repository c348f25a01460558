"""Quantised operators as the products of integers that they are.

Those with weights and numbers of the model's own become real operators between conversions (``real``).
Integers up to 2^24 are exact in float32, so a product whose sums stay below that runs in float32, where
libraries are; longer ones are split by the bits of the weights: two of four, four of two or eight of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tvm import relax

from .. import stock
from ..dimensions.dims import Dim
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of, shape_of
from . import dynamic
from .real import Integers, are_known, real, whole
from .table import converts

_EXACT = 2**24
"""The largest integer up to which float32 holds all."""


@converts("ConvInteger", "MatMulInteger")
def _product(emitter: Emitter, node: Node) -> Value:
    return dynamic.product(emitter, node)


@converts("ConvInteger")
def _conv_integer(emitter: Emitter, node: Node) -> Value:
    data = _centred(emitter, node.input(0), node.input(2), None)
    weights = _centred(emitter, node.input(1), node.input(3), 0)
    dims = shape_of(node.input(1))
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        raise NotTaken
    length = int(np.prod(dims[1:]))
    return _exact_product(emitter, length, weights, lambda part: _conv(emitter, node, data, part))


@converts("MatMulInteger")
def _matmul_integer(emitter: Emitter, node: Node) -> Value:
    left, right = node.input(0), node.input(1)
    dims = shape_of(right)
    length = None if dims is None else dims[-2] if len(dims) > 1 else dims[0]
    if not isinstance(length, int):
        raise NotTaken
    data = _centred(emitter, left, node.input(2), -2)
    weights = _centred(emitter, right, node.input(3), -1)
    return _exact_product(emitter, length, weights, lambda part: emitter.emit(relax.op.matmul(data, part)))


@converts("QLinearConv")
def _qlinear_conv(emitter: Emitter, node: Node) -> Value:
    places = Integers(0, 1, 2), Integers(3, 4, 5), Integers(-1, 6, 7)
    if are_known(node, *places) and isinstance(node.input(3), np.ndarray):
        result = _conv(emitter, node, *(real(emitter, node, place) for place in places[:2]))
        return whole(emitter, node, _with_bias(emitter, node, result), places[2], "uint8")
    data = _centred(emitter, node.input(0), node.input(2), None)
    weights = _centred(emitter, node.input(3), node.input(5), 0)
    result = _conv(emitter, node, data, weights)
    if node.input(8) is not None:
        bias = emitter.emit(relax.op.astype(emitter.tensor(node.input(8)), "float32"))
        result = emitter.emit(
            relax.op.add(result, emitter.reshaped(bias, [1, -1] + [1] * (emitter.rank(result) - 2)))
        )
    scale = _scale(emitter, node.input(1), node.input(4), result, 1)
    return _requantised(emitter, result, scale, node.input(6), node.input(7))


def _with_bias(emitter: Emitter, node: Node, result: relax.Expr) -> relax.Expr:
    """With the bias as real numbers: integers in the scale of the product."""
    if node.input(8) is None:
        return result
    bias = emitter.emit(relax.op.astype(emitter.tensor(node.input(8)), "float32"))
    scale = np.asarray(node.input(1), "float32") * np.asarray(node.input(4), "float32").reshape(-1)
    scaled = emitter.emit(relax.op.multiply(bias, relax.const(scale)))
    return emitter.emit(
        relax.op.add(result, emitter.reshaped(scaled, [1, -1] + [1] * (emitter.rank(result) - 2)))
    )


@converts("QLinearMatMul")
def _qlinear_matmul(emitter: Emitter, node: Node) -> Value:
    places = Integers(0, 1, 2), Integers(3, 4, 5, -1), Integers(-1, 6, 7)
    numbers = [value for at in (1, 2, 6, 7) if (value := node.input(at)) is not None]
    single = all(isinstance(one, np.ndarray) and one.size == 1 for one in numbers)
    if are_known(node, *places) and isinstance(node.input(3), np.ndarray) and single:
        left, right = (real(emitter, node, place) for place in places[:2])
        return whole(emitter, node, emitter.emit(relax.op.matmul(left, right)), places[2], "uint8")
    left = _centred(emitter, node.input(0), node.input(2), -2)
    right = _centred(emitter, node.input(3), node.input(5), -1)
    result = emitter.emit(relax.op.matmul(left, right))
    scale = _scale(emitter, node.input(1), node.input(4), result, -1)
    return _requantised(emitter, result, scale, node.input(6), node.input(7))


def _conv(emitter: Emitter, node: Node, data: relax.Expr, weights: relax.Expr) -> relax.Expr:
    (result,) = stock.converted(emitter, replace(node, op_type="Conv", inputs=[data, weights], opset=11))
    return emitter.emit(result) if not isinstance(result, relax.Var) else result


def _centred(emitter: Emitter, value: Value, zero: Value, axis: int | None) -> Value:
    """Integers less their zero point, in float32; ``axis`` is where a row of zero points stands."""
    if isinstance(value, np.ndarray) and (zero is None or isinstance(zero, np.ndarray)):
        wide = value.astype("float32")
        return relax.const(
            wide if zero is None else wide - _along_array(zero.astype("float32"), value.ndim, axis)
        )
    wide = emitter.emit(relax.op.astype(emitter.tensor(value), "float32"))
    if zero is None:
        return wide
    point = emitter.emit(relax.op.astype(emitter.tensor(zero), "float32"))
    return emitter.emit(relax.op.subtract(wide, _along(emitter, point, value, axis)))


def _along_array(row: np.ndarray, rank: int, axis: int | None) -> np.ndarray:
    if row.size == 1 or axis is None:
        return row.reshape(()) if row.size == 1 else row
    if row.ndim > 1:
        return row
    shape = [1] * rank
    shape[axis] = row.size
    return row.reshape(shape)


def _along(emitter: Emitter, row: relax.Expr, data: Value, axis: int | None) -> relax.Expr:
    """A row of numbers so that it broadcasts along one axis of ``data``; a single one as a scalar."""
    dims = shape_of(row)
    if dims is None or len(dims) > 1:
        return row
    if not dims or dims == [1] or axis is None:
        return emitter.reshaped(row, []) if dims == [1] else row
    shape: list[Dim] = [1] * emitter.rank(data)
    shape[axis] = dims[0]
    return emitter.reshaped(row, shape)


def _exact_product(
    emitter: Emitter, length: int, weights: relax.Expr, product: Callable[[relax.Expr], relax.Expr]
) -> Value:
    """A product of integers as int32, from some in float32 with as many bits as leave their sums exact."""
    emit = emitter.emit
    if length * 255 * 255 < _EXACT:
        return emit(relax.op.astype(product(weights), "int32"))
    bits = next((bits for bits in (4, 2, 1) if length * 255 * 2**bits < _EXACT), 0)
    if not bits:
        raise NotTaken
    base, left, result = relax.const(np.float32(2**bits)), weights, None
    for place in range(0, 8, bits):
        part = left
        if place + bits < 8:  # the last part is all that is left, and has the sign
            upper = emit(relax.op.floor(relax.op.divide(left, base)))
            part = emit(relax.op.subtract(left, relax.op.multiply(upper, base)))
            left = upper
        sums = emit(relax.op.astype(product(part), "int32"))
        sums = emit(relax.op.multiply(sums, relax.const(np.int32(2**place)))) if place else sums
        result = sums if result is None else emit(relax.op.add(result, sums))
    return result


def _scale(emitter: Emitter, left: Value, right: Value, data: Value, axis: int) -> relax.Expr:
    """The product of two scales, of which the second may be a row along an axis of ``data``."""
    first = emitter.emit(relax.op.astype(emitter.tensor(left), "float32"))
    second = emitter.emit(relax.op.astype(emitter.tensor(right), "float32"))
    row = -2 if axis == -1 else axis
    return emitter.emit(
        relax.op.multiply(_along(emitter, first, data, row), _along(emitter, second, data, axis))
    )


def _requantised(emitter: Emitter, value: relax.Expr, scale: relax.Expr, to: Value, zero: Value) -> Value:
    """Round half to even, add the zero point, and stop at the ends of the type."""
    emit = emitter.emit
    target = emit(relax.op.astype(emitter.tensor(to), "float32"))
    steps = emit(relax.op.divide(relax.op.multiply(value, scale), _along(emitter, target, value, -2)))
    dtype = "uint8" if zero is None else dtype_of(zero)
    rounded = emit(relax.op.round(steps))
    if zero is not None:
        point = emit(relax.op.astype(emitter.tensor(zero), "float32"))
        rounded = emit(relax.op.add(rounded, _along(emitter, point, value, -2)))
    ends = np.iinfo(dtype)
    return emit(relax.op.astype(relax.op.clip(rounded, float(ends.min), float(ends.max)), dtype))
