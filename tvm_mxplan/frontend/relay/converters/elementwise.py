"""Operators on one element at a time, with broadcasting as in numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from tvm import relax

from ...constants import constant
from ..node import Node, Value, dtype_of
from .table import TABLE, converts

_UNARY = {
    **{
        name: getattr(relax.op, name)
        for name in [
            "abs",
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "bitwise_not",
            "ceil",
            "cos",
            "cosh",
            "erf",
            "exp",
            "floor",
            "isfinite",
            "isinf",
            "isnan",
            "log",
            "logical_not",
            "negative",
            "round",
            "rsqrt",
            "sigmoid",
            "sign",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "trunc",
        ]
    },
    "fast_erf": relax.op.erf,
    "fast_exp": relax.op.exp,
    "fast_tanh": relax.op.tanh,
    "nn.relu": relax.op.nn.relu,
}
_BINARY = {
    **{
        name: getattr(relax.op, name)
        for name in [
            "add",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "divide",
            "equal",
            "floor_divide",
            "floor_mod",
            "greater",
            "greater_equal",
            "left_shift",
            "less",
            "less_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
            "maximum",
            "minimum",
            "mod",
            "multiply",
            "not_equal",
            "power",
            "right_shift",
            "subtract",
        ]
    },
    "trunc_mod": relax.op.mod,
}


def _unary(function: Callable[[relax.Expr], Value], node: Node) -> Value:
    return function(node.tensor(0))


def _binary(function: Callable[[relax.Expr, relax.Expr], Value], node: Node) -> Value:
    return function(node.tensor(0), node.tensor(1))


TABLE.update({name: partial(_unary, function) for name, function in _UNARY.items()})
TABLE.update({name: partial(_binary, function) for name, function in _BINARY.items()})


@converts(
    "copy",
    "annotation.stop_fusion",
    "annotation.checkpoint",
    "annotation.cast_hint",
    "on_device",
    "device_copy",
)
def _same(node: Node) -> Value:
    return node.args[0]


@converts("nn.dropout")
def _dropout(node: Node) -> Value:
    """The input, and a mask that keeps all: models are compiled for inference."""
    return [node.tensor(0), node.emit(relax.op.ones_like(node.tensor(0)))]


@converts("clip")
def _clip(node: Node) -> Value:
    src = node.tensor(0)
    low, high = node.number("a_min"), node.number("a_max")
    if dtype_of(src).startswith(("int", "uint")):
        bounds = np.iinfo(dtype_of(src))
        low, high = max(low, bounds.min), min(high, bounds.max)
    lowest = node.emit(relax.op.maximum(src, node.like(low, src)))
    return relax.op.minimum(lowest, node.like(high, src))


@converts("nn.leaky_relu")
def _leaky_relu(node: Node) -> Value:
    return relax.op.nn.leakyrelu(node.tensor(0), node.number("alpha"))


@converts("nn.prelu")
def _prelu(node: Node) -> Value:
    src, slope = node.tensor(0), node.tensor(1)
    axis = node.axis("axis", node.rank(src))
    slopes = node.fixed(slope)
    if slopes == [1]:
        channels = node.shape(src)[axis]
        slope = node.emit(relax.op.broadcast_to(slope, [channels]))
    return relax.op.nn.prelu(src, slope, axis)


@converts("cast")
def _cast(node: Node) -> Value:
    return relax.op.astype(node.tensor(0), node.text("dtype"))


@converts("cast_like")
def _cast_like(node: Node) -> Value:
    return relax.op.astype(node.tensor(0), dtype_of(node.tensor(1)))


@converts("where")
def _where(node: Node) -> Value:
    condition = node.tensor(0)
    if dtype_of(condition) != "bool":
        zero = constant(np.zeros((), dtype_of(condition)))
        condition = node.emit(relax.op.not_equal(condition, zero))
    return relax.op.where(condition, node.tensor(1), node.tensor(2))


@converts("trunc_divide")
def _trunc_divide(node: Node) -> Value:
    dst, src = node.tensor(0), node.tensor(1)
    if dtype_of(dst).startswith(("int", "uint")):
        return relax.op.divide(dst, src)
    return relax.op.trunc(node.emit(relax.op.divide(dst, src)))
