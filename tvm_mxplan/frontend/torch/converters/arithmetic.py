"""Arithmetic of two operands: factors, roundings and types that TVM's converters leave out."""

from __future__ import annotations

import functools
import math

from tvm import relax

from ....passes.relax_types import is_constant
from ..node import Emitter, Node, dtype_of, is_tensor
from .table import converts


@converts("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar")
def _sum(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    minuend, subtrahend = (right, left) if ".rsub." in node.operator else (left, right)
    if node["alpha"] != 1:
        subtrahend = emitter.emit(relax.op.multiply(subtrahend, emitter.scalar(node["alpha"], dtype)))
    if dtype == "bool":
        return emitter.emit(relax.op.logical_or(minuend, subtrahend))
    operator = relax.op.add if ".add." in node.operator else relax.op.subtract
    return emitter.emit(operator(minuend, subtrahend))


@converts("mul.Tensor", "mul.Scalar")
def _product(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    operator = relax.op.logical_and if dtype == "bool" else relax.op.multiply
    return emitter.emit(operator(left, right))


@converts("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode", "floor_divide.default")
def _quotient(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    floors = node.operator == "aten.floor_divide.default"
    mode = "floor" if floors else node.operands.get("rounding_mode")
    if mode == "floor":
        if "float" in dtype:
            return _floored(emitter, left, right, dtype)
        return emitter.emit(relax.op.floor_divide(left, right))
    quotient = _divided(emitter, left, right)
    return emitter.emit(relax.op.trunc(quotient)) if mode == "trunc" and "int" not in dtype else quotient


@converts("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor", "fmod.Tensor", "fmod.Scalar")
def _remainder(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    if ".fmod." in node.operator:
        return emitter.emit(relax.op.mod(left, right))
    if "float" not in dtype:
        return emitter.emit(relax.op.floor_mod(left, right))
    rest, beyond = _rest(emitter, left, right, dtype)
    return emitter.emit(relax.op.where(beyond, emitter.emit(relax.op.add(rest, right)), rest))


def _divided(emitter: Emitter, left: relax.Expr, right: relax.Expr) -> relax.Expr:
    """The quotient; kernels refuse a divisor that is the number 0, whose inverse is infinite."""
    if _is_zero(right):
        infinity = math.copysign(math.inf, float(right.value.numpy()))
        return emitter.emit(relax.op.multiply(left, relax.const(infinity, dtype_of(right))))
    return emitter.emit(relax.op.divide(left, right))


def _is_zero(divisor: relax.Expr) -> bool:
    scalar = is_constant(divisor) and divisor.ty.ndim == 0 and "float" in dtype_of(divisor)
    return scalar and not divisor.value.numpy()


def _rest(emitter: Emitter, left: relax.Expr, right: relax.Expr, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    """The remainder of a division of real numbers with the dividend's sign, and where that sign is wrong."""
    emit, zero = emitter.emit, relax.const(0.0, dtype)
    rest = emit(relax.op.mod(left, right))
    signs = (emit(relax.op.less(one, zero)) for one in (rest, right))
    differ = emit(relax.op.logical_xor(*signs))
    return rest, emit(relax.op.logical_and(emit(relax.op.not_equal(rest, zero)), differ))


def _floored(emitter: Emitter, left: relax.Expr, right: relax.Expr, dtype: str) -> relax.Expr:
    """The whole part of a quotient of real numbers: 1.0 // 0.1 is 9, as 0.1 is above a tenth."""
    emit, one = emitter.emit, relax.const(1.0, dtype)
    if _is_zero(right):
        return _divided(emitter, left, right)
    rest, beyond = _rest(emitter, left, right, dtype)
    quotient = emit(relax.op.divide(emit(relax.op.subtract(left, rest)), right))
    quotient = emit(relax.op.where(beyond, emit(relax.op.subtract(quotient, one)), quotient))
    found = emit(relax.op.floor(quotient))
    above = emit(relax.op.greater(emit(relax.op.subtract(quotient, found)), relax.const(0.5, dtype)))
    found = emit(relax.op.where(above, emit(relax.op.add(found, one)), found))
    by_zero = emit(relax.op.equal(right, relax.const(0.0, dtype)))
    return emit(relax.op.where(by_zero, emit(relax.op.divide(left, right)), found))


_COMPARISONS = {
    "eq": relax.op.equal,
    "ne": relax.op.not_equal,
    "lt": relax.op.less,
    "le": relax.op.less_equal,
    "gt": relax.op.greater,
    "ge": relax.op.greater_equal,
}


@converts(*(f"{name}.{kind}" for name in _COMPARISONS for kind in ("Tensor", "Scalar")))
def _comparison(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = _common(node)
    if dtype == "bool":
        dtype = "uint8"
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    return emitter.emit(_COMPARISONS[node.operator.split(".")[1]](left, right))


@converts("maximum.default", "minimum.default")
def _extremum(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    larger = ".maximum." in node.operator
    if dtype == "bool":  # kernels compare no booleans
        return emitter.emit((relax.op.logical_or if larger else relax.op.logical_and)(left, right))
    return emitter.emit((relax.op.maximum if larger else relax.op.minimum)(left, right))


@converts("where.self", "where.Scalar", "where.ScalarSelf", "where.ScalarOther")
def _chosen(emitter: Emitter, node: Node) -> relax.Expr:
    condition = emitter.cast(node["condition"], "bool")
    left, right = (emitter.operand(node[name], node.result.dtype) for name in ("self", "other"))
    return emitter.emit(relax.op.where(condition, left, right))


def _common(node: Node) -> str:
    """The type in which PyTorch compares: the wider one of the tensors', or a number's of a higher kind."""
    tensors = [node[name] for name in ("self", "other") if is_tensor(node[name])]
    numbers = [node[name] for name in ("self", "other") if not is_tensor(node[name])]
    full = [tensor for tensor in tensors if tensor.ty.ndim > 0] or tensors
    dtype = functools.reduce(promoted, map(dtype_of, full))
    kind = max(
        [*(_kind_of(number) for number in numbers), *(dtype_of(tensor) for tensor in tensors)], key=_kind
    )
    if _kind(kind) > _kind(dtype):
        return "int64" if _kind(kind) == 1 else kind
    return dtype


def _kind(dtype: str) -> int:
    return 0 if dtype == "bool" else 1 if "int" in dtype else 2


def _kind_of(number: object) -> str:
    return "bool" if isinstance(number, bool) else "float32" if isinstance(number, float) else "int64"


def promoted(left: str, right: str) -> str:
    """The narrowest type that PyTorch takes both for: where neither holds the other, a wider one."""
    low, high = sorted((left, right), key=_rank)
    if {low, high} == {"float16", "bfloat16"}:
        return "float32"
    if low == "uint8" and high == "int8":
        return "int16"
    return high


def _rank(dtype: str) -> tuple[int, int, bool]:
    """The place of a type among all, as far as PyTorch widens."""
    return _kind(dtype), int("".join(filter(str.isdigit, dtype)) or 0), not dtype.startswith("u")
