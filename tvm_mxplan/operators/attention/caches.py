"""Rows that are kept from call to call as operators of Relax, and attention on them.

    R.mxplan.put_rows(cache, rows, filled, axis=2) -> cache

    cache   (..., C, ...)   C rows along ``axis``, of which ``filled`` count
    rows    (..., S, ...)   new ones, which come behind those
    filled  (1) of int32
    result                  the cache with the new rows in their places; all others are as they were

    R.mxplan.cached_attention(query, key, value, keys, values, filled, mask, scale, causal, nan_is_zero)

    query (N, H, S, D), key (N, G, T, D), value (N, G, T, W)   as in ``attention``
    keys (N, G, C, D), values (N, G, C, W), filled             caches in front of key and value
    mask                                                       (..., filled + T) or wider
    results                                                    attention on all that count; both caches

The last is made of the first and of attention (``passes/canonicalize/attention/attend_caches.py``).  Where no
library takes it, TVM runs it over all rows of the caches, of which those that do not count are masked.
"""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax, te, tirx

from ..registration import Operator, dtype_of
from .operator import Attention, attention, attention_of, emitting, parts

STATES = "mxplan.states"
"""Attribute of a Relax function: pairs of an input and the result that is its next one, by their numbers."""
IN_PLACE = "mxplan.in_place"
"""The same: of those pairs the ones whose result may stand in the input's memory."""


def put_rows(cache: relax.Expr, rows: relax.Expr, filled: relax.Expr, axis: int) -> relax.Call:
    """The call of the operator."""
    return PUT_ROWS.call(cache, rows, filled, axis=axis)


def _put_type(call: relax.Call) -> tvm.ir.Type:
    return call.args[0].ty


def _put_legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    axis = int(call.attrs["axis"])

    def body(cache: te.Tensor, rows: te.Tensor, filled: te.Tensor) -> te.Tensor:
        count = rows.shape[axis]

        def number(*at: tirx.Var) -> tirx.Expr:
            place = at[axis] - tirx.Cast("int64", filled[0])
            own = (*at[:axis], tirx.Max(tirx.Min(place, count - 1), tirx.const(0, "int64")), *at[axis + 1 :])
            return tirx.if_then_else(tirx.all(place >= 0, place < count), rows(*own), cache(*at))

        return te.compute(cache.shape, number, name="put_rows")

    return builder.call_te(body, *call.args, primfunc_name_hint="put_rows")


PUT_ROWS = Operator("put_rows", "new rows behind those of a cache that count", _put_type, _put_legalize)


def cached_attention(
    kind: Attention,
    operands: tuple[relax.Expr, relax.Expr, relax.Expr],
    caches: tuple[relax.Expr, relax.Expr],
    filled: relax.Expr,
    mask: relax.Expr | None = None,
) -> relax.Call:
    """The call of the operator; ``operands`` are queries, new keys and new values."""
    given = [*operands, *caches, filled, *([] if mask is None else [mask])]
    attributes = {"scale": float(kind.scale), "causal": kind.causal, "nan_is_zero": kind.nan_is_zero}
    return CACHED_ATTENTION.call(*given, **attributes)


def _attention_type(call: relax.Call) -> tvm.ir.Type:
    query, _key, value, keys, values = (arg.ty for arg in call.args[:5])
    result = relax.TensorType([*query.shape.values[:3], value.shape.values[3]], query.dtype)
    return relax.TupleType([result, keys, values])


def _attention_legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    kind, (query, key, value, keys, values, filled, *masks) = attention_of(call), call.args
    emit = emitting(builder)
    joined_keys, joined_values = (
        emit(put_rows(cache, rows, filled, 2)) for cache, rows in ((keys, key), (values, value))
    )
    seen = builder.emit(_seen(builder, kind, call, filled, masks))
    whole = attention(Attention(kind.scale, "no", kind.nan_is_zero), query, joined_keys, joined_values, seen)
    return relax.Tuple([parts(builder.normalize(whole), emit), joined_keys, joined_values])


def _seen(
    builder: relax.BlockBuilder,
    kind: Attention,
    call: relax.Call,
    filled: relax.Expr,
    masks: list[relax.Expr],
) -> relax.Expr:
    """The mask of all rows of the caches: -inf where one does not count."""
    query, key, keys = call.args[0], call.args[1], call.args[3]
    rows, fresh, capacity = query.ty.shape.values[2], key.ty.shape.values[2], keys.ty.shape.values[2]
    dtype = dtype_of(query)
    nothing = tirx.const(-np.inf, dtype)

    def body(filled: te.Tensor, fresh: te.Tensor, *masks: te.Tensor) -> te.Tensor:
        count = tirx.Cast("int64", filled[0]) + fresh[0]
        first = {"no": None, "first": 0, "last": count - rows}[kind.causal]
        own = [masks[0].shape[axis] for axis in range(3)] if masks else [1, 1, 1]
        shape = [*own, capacity] if first is None else [*own[:2], rows, capacity]

        def number(n: tirx.Var, h: tirx.Var, s: tirx.Var, t: tirx.Var) -> tirx.Expr:
            found: tirx.Expr = tirx.const(0, dtype)
            if masks:
                (mask,) = masks
                places = [n, h, s, tirx.Min(t, mask.shape[3] - 1)]
                at = [
                    0 if _is_one(extent) else place for extent, place in zip(mask.shape, places, strict=True)
                ]
                found = mask(*at)
            counts = t < count if first is None else tirx.all(t < count, t <= first + s)
            return tirx.if_then_else(counts, found, nothing)

        return te.compute(shape, number, name="seen")

    # As a tensor: a kernel knows the extents of its operands alone.
    added = builder.emit(relax.op.shape_to_tensor(relax.ShapeExpr([fresh])))
    return builder.call_te(body, filled, added, *masks, primfunc_name_hint="seen")


def _is_one(extent: object) -> bool:
    return isinstance(extent, int | tirx.IntImm) and int(extent) == 1


CACHED_ATTENTION = Operator(
    "cached_attention", "attention on caches and new rows behind them", _attention_type, _attention_legalize
)
