"""Activations and bounds, with the factors and the order of bounds that TVM's converters let go of."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from tvm import relax

from ..node import Emitter, Node, axes_of, dims_of, dtype_of
from .table import converts


@converts("elu.default")
def _elu(emitter: Emitter, node: Node) -> relax.Expr:
    """``scale * x`` above zero, ``scale * alpha * (exp(input_scale * x) - 1)`` below: ELU, SELU and CELU."""
    source, dtype = node["self"], dtype_of(node["self"])

    def times(tensor: relax.Expr, factor: float) -> relax.Expr:
        return tensor if factor == 1 else emitter.emit(relax.op.multiply(tensor, relax.const(factor, dtype)))

    grown = emitter.emit(relax.op.exp(times(source, node["input_scale"])))
    below = emitter.emit(relax.op.nn.relu(emitter.emit(relax.op.subtract(relax.const(1.0, dtype), grown))))
    curved = emitter.emit(relax.op.multiply(relax.const(-float(node["alpha"]), dtype), below))
    found = emitter.emit(relax.op.add(curved, emitter.emit(relax.op.nn.relu(source))))
    return times(found, node["scale"])


@converts("clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_max.default")
def _clamped(emitter: Emitter, node: Node) -> relax.Expr:
    """The lower bound first, then the upper one, which holds where they cross."""
    low, high, dtype = node.operands.get("min"), node.operands.get("max"), node.result.dtype
    found = emitter.cast(node["self"], dtype)
    if _is_number(low) and _is_number(high) and "float" in dtype:
        return emitter.emit(relax.op.clip(found, min(low, high), high))
    larger, smaller = relax.op.maximum, relax.op.minimum
    if dtype == "bool":
        larger, smaller = relax.op.logical_or, relax.op.logical_and
    if low is not None:
        found = emitter.emit(larger(found, emitter.operand(low, dtype)))
    if high is not None:
        found = emitter.emit(smaller(found, emitter.operand(high, dtype)))
    return found


def _is_number(bound: Any) -> TypeGuard[float]:
    return isinstance(bound, int | float) and not math.isnan(bound)


@converts("fmax.default", "fmin.default")
def _extreme_but_for_nan(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    operator = relax.op.maximum if ".fmax." in node.operator else relax.op.minimum
    if dtype == "bool":
        operator = relax.op.logical_or if ".fmax." in node.operator else relax.op.logical_and
    found = emitter.emit(operator(left, right))
    if "float" not in dtype:
        return found
    for nan, other in ((left, right), (right, left)):
        found = emitter.emit(relax.op.where(emitter.emit(relax.op.isnan(nan)), other, found))
    return found


@converts("hypot.default")
def _hypotenuse(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    return length(emitter, *(emitter.operand(node[name], dtype) for name in ("self", "other")))


def length(emitter: Emitter, *sides: relax.Expr) -> relax.Expr:
    """The root of the sum of two squares, which may be beyond the type; infinity if a side is."""
    emit, dtype = emitter.emit, dtype_of(sides[0])
    sides = tuple(emit(relax.op.abs(side)) for side in sides)
    most = emit(relax.op.maximum(*sides))
    nothing = emit(relax.op.equal(most, relax.const(0.0, dtype)))
    divisor = emit(relax.op.where(nothing, relax.const(1.0, dtype), most))
    ratio = emit(relax.op.divide(emit(relax.op.minimum(*sides)), divisor))
    square = emit(relax.op.add(emit(relax.op.multiply(ratio, ratio)), relax.const(1.0, dtype)))
    found = emit(relax.op.multiply(most, emit(relax.op.sqrt(square))))
    total = emit(relax.op.add(*sides))  # NaN where a side is: the larger of two may pass it over
    found = emit(relax.op.where(emit(relax.op.isnan(total)), total, found))
    endless = [emit(relax.op.equal(side, relax.const(math.inf, dtype))) for side in sides]
    either = emit(relax.op.logical_or(*endless))
    return emit(relax.op.where(either, relax.const(math.inf, dtype), found))


@converts("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _truth(emitter: Emitter, node: Node) -> relax.Expr:
    """Whether any element, or all, are other than zero."""
    source = node["self"]
    if 0 in dims_of(source):  # of no elements
        empty = relax.const(".all." in node.operator, "bool")
        return emitter.broadcast(empty, node.result.shape)
    if dtype_of(source) != "bool":
        source = emitter.emit(relax.op.not_equal(source, relax.const(0, dtype_of(source))))
    source = emitter.cast(source, "int8")
    operator = relax.op.max if ".any." in node.operator else relax.op.min
    keep = bool(node.operands.get("keepdim")) and bool(node.result.shape)
    found = emitter.emit(operator(source, axes_of(node), keepdims=keep))
    if operator is relax.op.max:  # of no elements it is the least of its type
        return emitter.emit(relax.op.greater(found, relax.const(0, "int8")))
    return emitter.cast(found, "bool")


@converts("_softmax.default", "_log_softmax.default", "softmax.int", "log_softmax.int")
def _softmax(emitter: Emitter, node: Node) -> relax.Expr:
    operator = relax.op.nn.log_softmax if "log_softmax" in node.operator else relax.op.nn.softmax
    source = emitter.cast(node["self"], node.result.dtype)
    if dims_of(source):
        return emitter.emit(operator(source, node["dim"]))
    return emitter.reshaped(emitter.emit(operator(emitter.reshaped(source, [1]), 0)), [])
