"""Bits of integers and booleans: of two types, and shifted by any number of places."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...node import Emitter, Node, dtype_of
from ..table import converts


@converts(
    *(
        f"{name}.{kind}"
        for name in ("__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift")
        for kind in ("Tensor", "Scalar", "Tensor_Scalar", "Scalar_Tensor")
    )
)
def _shifted(emitter: Emitter, node: Node) -> relax.Expr:
    dtype, name = node.result.dtype, node.operator.split(".")[1]
    operands = (emitter.operand(node[one], dtype) for one in ("self", "other"))
    return shifted(emitter, *operands, left="lshift" in name or "left" in name)


def shifted(emitter: Emitter, bits: relax.Expr, places: relax.Expr, *, left: bool) -> relax.Expr:
    """Shifts by the width and more leave nothing but the sign; so do those by less than 0."""
    dtype, emit = dtype_of(bits), emitter.emit
    last, zero = (relax.const(value, dtype) for value in (np.iinfo(dtype).bits - 1, 0))
    outside = emit(relax.op.greater(places, last))
    if not dtype.startswith("u"):
        outside = emit(relax.op.logical_or(outside, emit(relax.op.less(places, zero))))
    amount = emit(relax.op.where(outside, last, places))
    if left:
        return emit(relax.op.where(outside, zero, emit(relax.op.left_shift(bits, amount))))
    found = emit(relax.op.right_shift(bits, amount))
    return emit(relax.op.where(outside, zero, found)) if dtype.startswith("u") else found


_OPERATORS = {
    "and": (relax.op.bitwise_and, relax.op.logical_and),
    "or": (relax.op.bitwise_or, relax.op.logical_or),
    "xor": (relax.op.bitwise_xor, relax.op.logical_xor),
}


@converts(
    *(
        f"{prefix}_{name}{suffix}.{kind}"
        for name in _OPERATORS
        for prefix, suffix in (("bitwise", ""), ("_", "__"))
        for kind in ("Tensor", "Scalar", "Scalar_Tensor")
    )
)
def _bitwise(emitter: Emitter, node: Node) -> relax.Expr:
    """Each bit, of operands in the type that holds both."""
    dtype = node.result.dtype
    left, right = (emitter.operand(node[name], dtype) for name in ("self", "other"))
    of_integers, of_booleans = _OPERATORS[node.operator.split(".")[1].strip("_").removeprefix("bitwise_")]
    return emitter.emit((of_booleans if dtype == "bool" else of_integers)(left, right))


@converts("bitwise_not.default")
def _negated(emitter: Emitter, node: Node) -> relax.Expr:
    """Each bit the other way around."""
    source = node["self"]
    return emitter.emit(
        (relax.op.logical_not if dtype_of(source) == "bool" else relax.op.bitwise_not)(source)
    )


@converts("neg.default")
def _negative(emitter: Emitter, node: Node) -> relax.Expr:
    """The number below 0; of a type without sign that is what wraps around."""
    source, dtype = node["self"], node.result.dtype
    if dtype.startswith("u"):
        return emitter.emit(relax.op.subtract(relax.const(0, dtype), source))
    return emitter.emit(relax.op.negative(source))


@converts("sign.default", "sgn.default")
def _sign(emitter: Emitter, node: Node) -> relax.Expr:
    source, dtype = node["self"], node.result.dtype
    if dtype == "bool":
        return source
    if dtype.startswith("u"):
        return emitter.cast(emitter.emit(relax.op.not_equal(source, relax.const(0, dtype))), dtype)
    return emitter.emit(relax.op.sign(source))
