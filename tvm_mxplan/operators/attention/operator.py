"""Attention and the rotary places in front of it as operators of Relax.

    R.mxplan.attention(query, key, value, mask, scale=0.125, causal="no", nan_is_zero=False)

    query (N, H, S, D)   H heads of S queries
    key   (N, G, T, D)   heads of keys; H / G heads of queries in a row share one
    value (N, G, T, W)
    mask                 added to the scores, float, broadcast to (N, H, S, T); may be missing
    result (N, H, S, W)  softmax(scale * query . key + mask) . value

    R.mxplan.rotary(data, cosines, sines, width=64, interleaved=False)

    data      (..., D)
    cosines   (..., width) or (..., width / 2), of as many axes, broadcast to those of data but the last
    sines     the same
    result    data, whose pairs (a, b) are (a * cosine - b * sine, b * cosine + a * sine)

The first ``width`` numbers of a row are pairs: its first half with its second one, or, ``interleaved``,
neighbours.  The others stay.  A table has a number for each of them, or one for each pair.

A library that has an operator takes it whole.  Where none does, it becomes its parts when operators are
legalized, which TVM runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

from tvm_mxplan.core.program.kinds.sequences import Attention as Attention
from tvm_mxplan.core.program.kinds.sequences import AttentionCausal

from ..registration import Operator

NAME = "relax.mxplan.attention"


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
    causal: AttentionCausal = str(attrs["causal"])  # type: ignore[assignment]
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


def _seen(causal: AttentionCausal, query: relax.Expr, key: relax.Expr, emit: Emit) -> relax.Expr:
    """Whether a query (rows) sees a key (columns)."""
    rows, columns = query.ty.shape.values[2], key.ty.shape.values[2]
    first = columns - rows if causal == "last" else 0
    at_row = emit(relax.op.expand_dims(emit(relax.op.arange(first, first + rows, 1, "int64")), 1))
    return emit(relax.op.greater_equal(at_row, emit(relax.op.arange(0, columns, 1, "int64"))))


def emitting(builder: relax.BlockBuilder) -> Emit:
    """Binds what an operator's legalization makes of it."""

    def emit(part: relax.Expr) -> relax.Expr:
        part = builder.normalize(part)
        return builder.emit(part.op.get_attr("FLegalize")(builder, part))

    return emit


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    return parts(call, emitting(builder))


# --- rotary places ---------------------------------------------------------------------------------------


def rotary(
    data: relax.Expr, cosines: relax.Expr, sines: relax.Expr, *, width: int, interleaved: bool
) -> relax.Call:
    """The call of the operator; see the module's text."""
    return ROTARY.call(data, cosines, sines, width=width, interleaved=interleaved)


def _infer_rotary(call: relax.Call) -> tvm.ir.Type:
    return call.args[0].ty


def _legalize_rotary(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    emit = emitting(builder)
    data, cosines, sines = call.args
    *lead, extent = data.ty.shape.values
    last, width = len(lead), int(call.attrs["width"])
    half, interleaved = width // 2, bool(call.attrs["interleaved"])

    def part(whole: relax.Expr, begin: int, end: int) -> relax.Expr:
        return emit(op.strided_slice(whole, [last], [begin], [end]))

    def pairs(whole: relax.Expr) -> list[relax.Expr]:
        """The first and the second numbers of pairs."""
        if not interleaved:
            return [part(whole, 0, half), part(whole, half, width)]
        return [emit(op.strided_slice(whole, [last], [at], [width], [2])) for at in (0, 1)]

    whole_tables = int(cosines.ty.shape.values[-1]) == width
    cosine, sine = ((pairs(table) if whole_tables else [table] * 2) for table in (cosines, sines))
    (a, b) = pairs(data)
    first = emit(op.subtract(emit(op.multiply(a, cosine[0])), emit(op.multiply(b, sine[0]))))
    second = emit(op.add(emit(op.multiply(b, cosine[1])), emit(op.multiply(a, sine[1]))))
    if interleaved:
        apart = [emit(op.expand_dims(one, last + 1)) for one in (first, second)]
        turned = emit(op.reshape(emit(op.concat(apart, last + 1)), relax.ShapeExpr([*lead, width])))
    else:
        turned = emit(op.concat([first, second], last))
    if int(extent) == width:
        return turned
    return emit(op.concat([turned, part(data, width, int(extent))], last))


ROTARY = Operator("rotary", "pairs of numbers rotated by their places", _infer_rotary, _legalize_rotary)
