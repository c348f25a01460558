"""Arithmetic of two operands: factors, roundings and types that TVM's converters leave out."""

from __future__ import annotations

from tvm import relax

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
        return emitter.emit(relax.op.floor_divide(left, right))
    quotient = emitter.emit(relax.op.divide(left, right))
    return emitter.emit(relax.op.trunc(quotient)) if mode == "trunc" and "int" not in dtype else quotient


@converts("remainder.Tensor", "remainder.Scalar", "fmod.Tensor", "fmod.Scalar")
def _remainder(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    operator = relax.op.floor_mod if ".remainder." in node.operator else relax.op.mod
    return emitter.emit(operator(left, right))


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
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    return emitter.emit(_COMPARISONS[node.operator.split(".")[1]](left, right))


@converts("maximum.default", "minimum.default")
def _extremum(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    operator = relax.op.maximum if ".maximum." in node.operator else relax.op.minimum
    return emitter.emit(operator(left, right))


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
    dtype = max((dtype_of(tensor) for tensor in full), key=_rank)
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


def _rank(dtype: str) -> tuple[int, int]:
    """The place of a type among all, as far as PyTorch widens."""
    return _kind(dtype), int("".join(filter(str.isdigit, dtype)) or 0)
