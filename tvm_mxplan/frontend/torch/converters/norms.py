"""Norms of channels: of instances, and of batches, by their own statistics or by those that are kept.

PyTorch writes a norm of B instances of C channels as that of one batch with B * C channels:

    view(x, [1, B * C, ...])  ->  _native_batch_norm_legit.no_stats(..., repeat(w, [B]), repeat(b, [B]))

It becomes a norm of what stands in front of the view.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relax

from ....operators.batch_norm import Normalization, batch_norm
from ....passes.relax_types import constant_of, make_constant
from ...onnx.dimensions.dims import Dim, expression, same
from ..node import Emitter, Node, dims_of, dtype_of
from .table import converts

_RANKS = range(2, 6)
"""Ranks of batch norms that libraries take."""


@converts("_native_batch_norm_legit.no_stats")
def _norm(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    """The results beside the first are for gradients."""
    if same(dims_of(node["input"])[0], 1):
        return [_instance_norm(emitter, node), None, None]
    dims = dims_of(node["input"])
    known = len(dims) in _RANKS and all(isinstance(dim, int) and dim > 0 for dim in dims)
    return [(_batch_norm if known else _batch_norm_in_parts)(emitter, node), None, None]


@converts("_native_batch_norm_legit_no_training.default")
def _kept_norm(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    """By statistics that are kept."""
    names = ("weight", "bias", "running_mean", "running_var")
    source, factors = _of_instances(emitter, node["input"], [node[name] for name in names])
    scale, center = (factor is not None for factor in factors[:2])
    numbers = (1.0, 0.0, 0.0, 1.0)
    filled = [_filled(emitter, source, at, one) for at, one in zip(numbers, factors, strict=True)]
    found = emitter.emit(
        relax.op.nn.batch_norm(
            source,
            *filled,
            axis=1,
            epsilon=float(node["eps"]),
            center=center,
            scale=scale,
            momentum=float(node["momentum"]),
            training=False,
        )
    )
    result = emitter.emit(relax.TupleGetItem(found, 0))
    return [emitter.reshaped(result, dims_of(node["input"])), None, None]


def _instance_norm(emitter: Emitter, node: Node) -> relax.Expr:
    source, factors = _of_instances(emitter, node["input"], [node["weight"], node["bias"]])
    weight, bias = (_filled(emitter, source, at, one) for at, one in zip((1.0, 0.0), factors, strict=True))
    found = emitter.emit(
        relax.op.nn.instance_norm(
            source,
            weight,
            bias,
            channel_axis=1,
            axes=list(range(2, len(dims_of(source)))),
            epsilon=float(node["eps"]),
            center=factors[1] is not None,
            scale=factors[0] is not None,
        )
    )
    return emitter.reshaped(found, dims_of(node["input"]))


def _of_instances(
    emitter: Emitter, source: relax.Expr, factors: list[relax.Expr | None]
) -> tuple[relax.Expr, list[relax.Expr | None]]:
    """The instances in front of a view and the factors of one of them; without a view, what is given."""
    instances = _in_front_of_view(emitter, source)
    if instances is None or not _is_view_of(dims_of(source), dims_of(instances)):
        return source, factors
    channels = dims_of(instances)[1]
    of_one = [None if one is None else _of_one_instance(emitter, one, channels) for one in factors]
    known = all((one is None) == (factor is None) for one, factor in zip(of_one, factors, strict=True))
    return (instances, of_one) if known else (source, factors)


def _filled(emitter: Emitter, source: relax.Expr, number: float, factor: relax.Expr | None) -> relax.Expr:
    """The factor, or else the number for each channel."""
    if factor is not None:
        return factor
    channels, dtype = dims_of(source)[1], dtype_of(source)
    if isinstance(channels, int):
        return relax.const(np.full([channels], number, dtype))
    return emitter.broadcast(relax.const(number, dtype), [channels])


def _in_front_of_view(emitter: Emitter, tensor: relax.Expr) -> relax.Expr | None:
    """The tensor that ``tensor`` is a view of, in the type of ``tensor``; None where that is no view."""
    call = _definition(emitter, tensor)
    if _is_call(call, "reshape"):
        return call.args[0]
    inner = _in_front_of_view(emitter, call.args[0]) if _is_call(call, "astype") else None
    return None if inner is None else emitter.cast(inner, dtype_of(tensor))


def _is_view_of(dims: Sequence[Dim], instances: Sequence[Dim]) -> bool:
    """Whether ``dims`` are those of ``instances`` with all channels of all instances side by side."""
    if len(dims) != len(instances) or len(dims) < 2 or not isinstance(instances[1], int):
        return False
    channels = expression(instances[0]) * instances[1]
    return same(dims[1], channels) and all(map(same, dims[2:], instances[2:]))


def _of_one_instance(emitter: Emitter, factor: relax.Expr, channels: int) -> relax.Expr | None:
    """The factors of one instance, which all others repeat; None where they may differ."""
    array = constant_of(factor)
    if array is not None:
        rows = array.reshape(-1, channels)
        return make_constant(rows[0].copy()) if len(rows) and (rows == rows[0]).all() else None
    if same(dims_of(factor)[0], channels):
        return factor
    call = _definition(emitter, factor)
    if _is_call(call, "astype"):
        inner = _of_one_instance(emitter, call.args[0], channels)
        return None if inner is None else emitter.cast(inner, dtype_of(factor))
    if _is_call(call, "reshape"):
        call = _definition(emitter, call.args[0])
    if not _is_call(call, "tile", "broadcast_to"):
        return None
    # Repeated are whole rows: the last axis stays.
    repeated = call.args[0]
    row = dims_of(repeated)
    if not row or not same(row[-1], channels) or not all(same(dim, 1) for dim in row[:-1]):
        return None
    kept = _is_call(call, "tile") or same(dims_of(call)[-1], channels)
    return emitter.reshaped(repeated, [channels]) if kept else None


def _definition(emitter: Emitter, expr: relax.Expr) -> relax.Expr:
    found = emitter.builder.lookup_binding(expr) if isinstance(expr, tvm.ir.Var) else None
    return expr if found is None else found


def _is_call(expr: relax.Expr, *names: str) -> bool:
    return (
        isinstance(expr, relax.Call)
        and isinstance(expr.op, tvm.ir.Op)
        and expr.op.name.removeprefix("relax.") in names
    )


def _batch_norm(emitter: Emitter, node: Node) -> relax.Expr:
    """One operator, whose running statistics nobody reads."""
    source = node["input"]
    weight, bias = (_filled(emitter, source, at, node[name]) for at, name in ((1.0, "weight"), (0.0, "bias")))
    running = [_filled(emitter, source, at, None) for at in (0.0, 1.0)]
    norm = Normalization(float(node["eps"]), momentum=0.0, unbiased=False)
    found = emitter.emit(batch_norm([source, weight, bias, *running], norm))
    return emitter.emit(relax.TupleGetItem(found, 0))


def _batch_norm_in_parts(emitter: Emitter, node: Node) -> relax.Expr:
    """The norm of a batch whose extents are named, or that is empty."""
    source, op, emit = node["input"], relax.op, emitter.emit
    rank, dtype = len(dims_of(source)), dtype_of(source)

    def mean(tensor: relax.Expr) -> relax.Expr:
        if rank > 2:
            tensor = emit(op.mean(tensor, list(range(2, rank)), keepdims=True))
        return emit(op.mean(tensor, [0], keepdims=True))

    def row(factor: relax.Expr) -> relax.Expr:
        return emitter.reshaped(factor, [1, dims_of(source)[1], *[1] * (rank - 2)])

    centred = emit(op.subtract(source, mean(source)))
    variance = mean(emit(op.multiply(centred, centred)))
    inverse = emit(op.rsqrt(emit(op.add(variance, relax.const(float(node["eps"]), dtype)))))
    found = emit(op.multiply(centred, inverse))
    if node["weight"] is not None:
        found = emit(op.multiply(found, row(node["weight"])))
    return found if node["bias"] is None else emit(op.add(found, row(node["bias"])))
