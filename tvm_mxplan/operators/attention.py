"""Attention as an operator of Relax: ``mxplan.attention``.

    R.mxplan.attention(query, key, value, mask, scale=0.125, causal="no", nan_is_zero=False)

    query (N, H, S, D)   H heads of S queries
    key   (N, G, T, D)   heads of keys; H / G heads of queries in a row share one
    value (N, G, T, W)
    mask                 added to the scores, float, broadcast to (N, H, S, T); may be missing
    result (N, H, S, W)  softmax(scale * query . key + mask) . value

A library that has attention takes the operator whole.  Where none does, it becomes its parts when operators
are legalized, which TVM runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import tvm
from tvm import relax

Causal: TypeAlias = Literal["no", "first", "last"]

NAME = "relax.mxplan.attention"


@dataclass(frozen=True)
class Attention:
    """All that attention is, but for its operands.

    Attributes
    ----------
    scale : of the products of queries and keys.
    causal : the keys that a query sees: all (``no``); those up to its own place, counted from the first key
        (``first``), or with the last query at the last key (``last``).
    nan_is_zero : weights that are NaN, as those of queries that see nothing, count as 0.
    """

    scale: float
    causal: Causal = "no"
    nan_is_zero: bool = False


def attention(
    kind: Attention, query: relax.Expr, key: relax.Expr, value: relax.Expr, mask: relax.Expr | None = None
) -> relax.Call:
    """The call of the operator."""
    register()
    attrs = tvm.ir.make_node(
        "ir.DictAttrs", scale=float(kind.scale), causal=kind.causal, nan_is_zero=kind.nan_is_zero
    )
    operands = [query, key, value] if mask is None else [query, key, value, mask]
    return relax.Call(tvm.ir.Op.get(NAME), operands, attrs)


def attention_of(call: relax.Call) -> Attention:
    """The inverse of :func:`attention`, but for the operands."""
    attrs = call.attrs
    causal: Causal = str(attrs["causal"])  # type: ignore[assignment]
    return Attention(float(attrs["scale"]), causal, bool(attrs["nan_is_zero"]))


@functools.cache
def register() -> None:
    """Make the operator known to TVM; more than once does no harm."""
    tvm.ir._ffi_api.RegisterOp(NAME, "attention: two products around a softmax")
    tvm.ir.register_op_attr(NAME, "FInferType", _infer)
    tvm.ir.register_op_attr(NAME, "FPurity", True)
    tvm.ir.register_op_attr(NAME, "FLegalize", _legalize)


def _infer(call: relax.Call, _builder: relax.BlockBuilder) -> tvm.ir.Type:
    query, value = call.args[0].ty, call.args[2].ty
    if not all(isinstance(one.shape, relax.ShapeExpr) for one in (query, value)):
        return relax.TensorType(dtype=query.dtype, ndim=4)
    return relax.TensorType([*query.shape.values[:3], value.shape.values[3]], query.dtype)


Emit: TypeAlias = Callable[[relax.Expr], relax.Expr]


def parts(call: relax.Call, emit: Emit) -> relax.Expr:
    """The same by operators of Relax; ``emit`` binds each of them."""
    kind, (query, key, value, *masks) = attention_of(call), call.args
    dtype = str(query.ty.dtype)
    times = int(query.ty.shape.values[1]) // int(key.ty.shape.values[1])
    if times != 1:
        key, value = (emit(relax.op.repeat(one, times, 1)) for one in (key, value))
    turned = emit(relax.op.permute_dims(key, [0, 1, 3, 2]))
    scaled = emit(relax.op.multiply(query, relax.const(kind.scale, dtype)))
    scores = emit(relax.op.matmul(scaled, turned))
    for mask in masks:
        scores = emit(relax.op.add(scores, mask))
    if kind.causal != "no":
        scores = emit(relax.op.where(_seen(kind.causal, query, key, emit), scores, _nothing(dtype)))
    weights = emit(relax.op.nn.softmax(scores, -1))
    if kind.nan_is_zero:
        weights = emit(relax.op.where(emit(relax.op.isnan(weights)), relax.const(0, dtype), weights))
    return emit(relax.op.matmul(weights, value))


def _nothing(dtype: str) -> relax.Expr:
    return relax.const(np.array(-np.inf, dtype))


def _seen(causal: Causal, query: relax.Expr, key: relax.Expr, emit: Emit) -> relax.Expr:
    """Whether a query (rows) sees a key (columns)."""
    rows, columns = query.ty.shape.values[2], key.ty.shape.values[2]
    first = columns - rows if causal == "last" else 0
    at_row = emit(relax.op.expand_dims(emit(relax.op.arange(first, first + rows, 1, "int64")), 1))
    return emit(relax.op.greater_equal(at_row, emit(relax.op.arange(0, columns, 1, "int64"))))


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    def emit(part: relax.Expr) -> relax.Expr:
        part = builder.normalize(part)
        return builder.emit(part.op.get_attr("FLegalize")(builder, part))

    return parts(call, emit)
