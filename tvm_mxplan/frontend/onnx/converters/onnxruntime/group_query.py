"""GroupQueryAttention: several heads of queries for one of keys, and a cache that rows fill unequally.

A row's elements before the query are those that its number in ``seqlens_k`` leaves; keys and values of the
query go behind them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from tvm import relax, te, tirx

from .....errors import UnsupportedError
from ...dimensions.dims import Dim, divided, expression, simplified
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts
from .embedding import Rotation, rotated

_DOMAIN = "com.microsoft"


@dataclass(frozen=True)
class _Rows:
    """The rows of a batch.

    Attributes
    ----------
    batch, length : rows, and elements of the query in each.
    total : elements of the cache behind this call.
    before : how many elements of each row came earlier, ``[batch]``.
    """

    batch: Dim
    length: Dim
    total: Dim
    before: relax.Expr


@converts("GroupQueryAttention", domain=_DOMAIN)
def _group_query_attention(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    _refuse(emitter, node)
    heads, groups = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    query, key, value = _operands(emitter, node, heads, groups)
    batch, length, _, size = emitter.shape(query)
    if not isinstance(size, int):
        raise NotTaken
    past_key, past_value = node.input(3), node.input(4)
    (stated,) = emitter.dims(node.input(6))
    kept: Dim = 0 if past_key is None else emitter.shape(past_key)[2]
    total = simplified(tirx.max(expression(kept), expression(stated)))
    rows = _Rows(batch, length, total, _before(emitter, node, length))
    if node.attribute("do_rotary", 0):
        positions = _positions(emitter, rows) if node.input(9) is None else emitter.tensor(node.input(9))
        rotation = Rotation(
            emitter.tensor(node.input(7)),
            emitter.tensor(node.input(8)),
            bool(node.attribute("rotary_interleaved", 0)),
        )
        query, key = (rotated(emitter, part, positions, rotation) for part in (query, key))
    keys = _cached(emitter, past_key, key, rows)
    values = _cached(emitter, past_value, value, rows)
    result = _attended(emitter, node, query, keys, values, rows)
    return result, keys, values


def _refuse(emitter: Emitter, node: Node) -> None:
    """Options that nothing here computes."""
    stated = {
        "quantised keys or values": node.attribute("kv_cache_bit_width", 0) or node.input(12) is not None,
        "a cache as long as its window": node.attribute("sliding_window_cache", 0),
        "scores as a result": node.attribute("qk_output", 0) or (len(node.outputs) > 3 and node.outputs[3]),
        "norms of queries and keys": node.input(14) is not None or node.input(15) is not None,
    }
    for what, given in stated.items():
        if given:
            raise UnsupportedError(f"{emitter.importer.called(node)}: {what}; expected none of that")


def _operands(
    emitter: Emitter, node: Node, heads: int, groups: int
) -> tuple[relax.Expr, relax.Expr, relax.Expr]:
    """Queries, keys and values as ``[batch, length, heads, size]``, which may come in one tensor."""
    data = emitter.tensor(node.input(0))
    batch, length, width = emitter.shape(data)
    if node.input(1) is not None:
        size = divided(width, heads)
        return (
            emitter.reshaped(data, [batch, length, heads, size]),
            emitter.reshaped(emitter.tensor(node.input(1)), [batch, length, groups, size]),
            emitter.reshaped(emitter.tensor(node.input(2)), [batch, length, groups, size]),
        )
    size = divided(width, heads + 2 * groups)
    apart = emitter.reshaped(data, [batch, length, heads + 2 * groups, size])
    ends = [0, heads, heads + groups, heads + 2 * groups]
    query, key, value = (
        emitter.emit(relax.op.strided_slice(apart, [2], [begin], [end], [1], assume_inbound=True))
        for begin, end in itertools.pairwise(ends)
    )
    return query, key, value


def _before(emitter: Emitter, node: Node, length: Dim) -> relax.Expr:
    """Counts the elements of each row before the query; none where the query is all there is."""
    lengths = emitter.emit(relax.op.astype(emitter.tensor(node.input(5)), "int64"))

    whole = emitter.emit(relax.op.astype(emitter.tensor(node.input(6)), "int64"))

    def kernel(last: te.Tensor, whole: te.Tensor, length: tirx.Expr) -> te.Tensor:
        zero = tirx.const(0, "int64")
        stated = whole(*[0] * len(whole.shape))

        def element(row: tirx.Var) -> tirx.Expr:
            number = last(row, *[0] * (len(last.shape) - 1))  # a plain row, or a column
            return tirx.if_then_else(stated <= length, zero, tirx.max(number + 1 - length, zero))

        return te.compute((last.shape[0],), element, "before")

    return emitter.builder.emit_te(
        kernel, lengths, whole, expression(length), primfunc_name_hint="elements_before"
    )


def _positions(emitter: Emitter, rows: _Rows) -> relax.Expr:
    def kernel(before: te.Tensor, length: tirx.Expr) -> te.Tensor:
        return te.compute((before.shape[0], length), lambda row, at: before[row] + at, "positions")

    return emitter.builder.emit_te(
        kernel, rows.before, expression(rows.length), primfunc_name_hint="positions"
    )


def _cached(emitter: Emitter, past: Value, new: relax.Expr, rows: _Rows) -> relax.Expr:
    """The cache ``[batch, groups, total, size]`` with the new elements behind those of each row."""
    operands = [] if past is None else [emitter.tensor(past)]

    def kernel(before: te.Tensor, new: te.Tensor, total: tirx.Expr, *past: te.Tensor) -> te.Tensor:
        batch, length, groups, size = new.shape
        zero = tirx.const(0, "int64")

        def element(row: tirx.Var, group: tirx.Var, at: tirx.Var, depth: tirx.Var) -> tirx.Expr:
            place = at - before[row]
            fresh = new(row, tirx.max(tirx.min(place, length - 1), zero), group, depth)
            kept = tirx.const(0, new.dtype)
            if past:
                old = past[0].shape[2]
                inside = tirx.max(tirx.min(at, old - 1), zero)
                kept = tirx.if_then_else(at < old, past[0](row, group, inside, depth), kept)
            return tirx.if_then_else(tirx.And(place >= 0, place < length), fresh, kept)

        return te.compute((batch, groups, total, size), element, "cache")

    return emitter.builder.emit_te(
        kernel, rows.before, new, expression(rows.total), *operands, primfunc_name_hint="fill_cache"
    )


def _attended(
    emitter: Emitter, node: Node, query: relax.Expr, keys: relax.Expr, values: relax.Expr, rows: _Rows
) -> relax.Expr:
    emit, dtype = emitter.emit, dtype_of(query)
    _, _, heads, size = emitter.shape(query)
    groups = emitter.shape(keys)[1]
    each = heads // groups
    wide = [
        part if dtype == "float32" else emit(relax.op.astype(part, "float32"))
        for part in (query, keys, values)
    ]
    rank = [rows.batch, groups, simplified(expression(rows.length) * each)]
    split = emit(relax.op.permute_dims(wide[0], [0, 2, 1, 3]))  # heads of a group stand behind each other
    split = emitter.reshaped(split, [*rank, size])
    turned = emit(relax.op.permute_dims(wide[1], [0, 1, 3, 2]))
    scale = node.attribute("scale", 0.0) or 1.0 / math.sqrt(size)
    scores = emit(relax.op.multiply(relax.op.matmul(split, turned), constant(scale, "float32")))
    scores = emitter.reshaped(scores, [rows.batch, heads, rows.length, rows.total])
    softcap = node.attribute("softcap", 0.0)
    if softcap > 0:
        cap = constant(softcap, "float32")
        scores = emit(relax.op.multiply(relax.op.tanh(relax.op.divide(scores, cap)), cap))
    bias = node.input(10)
    if bias is not None:
        added = emitter.tensor(bias)
        added = added if dtype_of(added) == "float32" else emit(relax.op.astype(added, "float32"))
        scores = emit(relax.op.add(scores, added))
    weights = _weights(emitter, node, _masked(emitter, node, scores, rows), heads)
    weights = emitter.reshaped(weights, [*rank, rows.total])
    result = emit(relax.op.matmul(weights, wide[2]))
    result = emitter.reshaped(result, [rows.batch, heads, rows.length, size])
    result = emit(relax.op.permute_dims(result, [0, 2, 1, 3]))
    result = emitter.reshaped(result, [rows.batch, rows.length, heads * size])
    return result if dtype == "float32" else emit(relax.op.astype(result, dtype))


def _masked(emitter: Emitter, node: Node, scores: relax.Expr, rows: _Rows) -> relax.Expr:
    """Scores of keys that a query does not see, as minus infinity."""
    causal, window = node.attribute("causal", 1), node.attribute("local_window_size", -1)

    def kernel(tensor: te.Tensor, before: te.Tensor) -> te.Tensor:
        def element(row: tirx.Var, head: tirx.Var, query: tirx.Var, key: tirx.Var) -> tirx.Expr:
            at = query + before[row]
            seen = key <= at if causal else key < before[row] + tensor.shape[2]
            if window > 0:
                seen = tirx.And(seen, key > at - window)
            return tirx.if_then_else(
                seen, tensor(row, head, query, key), tirx.const(float("-inf"), "float32")
            )

        return te.compute(tensor.shape, element, "masked")

    return emitter.builder.emit_te(kernel, scores, rows.before, primfunc_name_hint="mask_scores")


def _weights(emitter: Emitter, node: Node, scores: relax.Expr, heads: int) -> relax.Expr:
    """The softmax of scores, with one more element that nothing is taken from where the node says so."""
    emit = emitter.emit
    sink = node.input(11)
    if sink is None and node.attribute("smooth_softmax", 0) != 1:
        return emit(relax.op.nn.softmax(scores, -1))
    batch, _, length, total = emitter.shape(scores)
    more = constant([0.0] * heads, "float32") if sink is None else emitter.tensor(sink)
    more = more if dtype_of(more) == "float32" else emit(relax.op.astype(more, "float32"))
    shape = relax.ShapeExpr([expression(dim) for dim in (batch, heads, length, 1)])
    column = emit(relax.op.broadcast_to(emitter.reshaped(more, [1, heads, 1, 1]), shape))
    weights = emit(relax.op.nn.softmax(emit(relax.op.concat([scores, column], 3)), -1))
    bounds = ([3], [expression(0)], [expression(total)], [expression(1)])
    return emit(relax.op.strided_slice(weights, *bounds, assume_inbound=True))
