"""Attention and MultiHeadAttention: projections, masks of several forms, and what was computed before."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tvm import relax, te, tirx

from .....errors import UnsupportedError
from ...dimensions.dims import Dim, divided, expression, same, simplified
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of, rank_of
from ..numbers import constant
from ..table import converts

_DOMAIN = "com.microsoft"


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values as ``[batch, heads, length, size]``."""

    query: relax.Expr
    key: relax.Expr
    value: relax.Expr


@dataclass(frozen=True)
class Masks:
    """The terms that are added to scores before the softmax.

    Attributes
    ----------
    bias : a tensor that broadcasts to ``[batch, heads, length, total]``.
    keys : 1 where a key counts, lengths of rows, or one mask for each query.
    causal : whether an element sees those before it only.
    filtered : the number for what is masked.
    """

    bias: Value = None
    keys: Value = None
    causal: bool = False
    filtered: float = -10000.0


@converts("MultiHeadAttention", domain=_DOMAIN)
def _multi_head_attention(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    if node.input(8) is not None or node.input(9) is not None or (len(node.outputs) > 3 and node.outputs[3]):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: past_sequence_length, cache_indirection or the scores as a "
            "result; expected none of these"
        )
    query, key, value = _projected(emitter, node, node.attributes["num_heads"])
    past_key, past_value = node.input(6), node.input(7)
    if past_key is not None and past_value is not None:
        key = emitter.emit(relax.op.concat([emitter.tensor(past_key), key], 2))
        value = emitter.emit(relax.op.concat([emitter.tensor(past_value), value], 2))
    masks = Masks(
        node.input(5),
        node.input(4),
        bool(node.attribute("unidirectional", 0)),
        node.attribute("mask_filter_value", -10000.0),
    )
    scale = node.attribute("scale", 0.0) or None
    result = attended(emitter, node, Heads(query, key, value), masks, scale)
    return result, key, value


def _projected(emitter: Emitter, node: Node, heads: int) -> tuple[relax.Expr, relax.Expr, relax.Expr]:
    """Queries, keys and values by heads, from the forms in which they come: apart, or packed in fives."""
    query, key, value, bias = (node.input(at) for at in range(4))
    data = emitter.tensor(query)
    if rank_of(data) == 5:  # [batch, length, heads, 3, size]
        parts = [_packed(emitter, data, at) for at in range(3)]
    elif key is not None and rank_of(emitter.tensor(key)) == 5:  # [batch, length, heads, 2, size]
        both = emitter.tensor(key)
        parts = [_split(emitter, data, heads), _packed(emitter, both, 0), _packed(emitter, both, 1)]
    elif key is None or value is None:
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: neither keys nor values; expected them, or packed queries"
        )
    else:
        parts = [_split(emitter, emitter.tensor(one), heads) for one in (data, key, value)]
    if bias is None:
        return parts[0], parts[1], parts[2]
    rows = emitter.tensor(bias)
    sizes = [emitter.shape(part)[3] for part in parts]
    if not all(isinstance(size, int) for size in sizes):
        raise NotTaken
    begin, added = 0, []
    for part, size in zip(parts, sizes, strict=True):
        end = begin + heads * size
        row = emitter.emit(relax.op.strided_slice(rows, [0], [begin], [end], [1], assume_inbound=True))
        added.append(emitter.emit(relax.op.add(part, emitter.reshaped(row, [1, heads, 1, size]))))
        begin = end
    return added[0], added[1], added[2]


def _split(emitter: Emitter, data: relax.Expr, heads: int) -> relax.Expr:
    """``[batch, length, heads * size]`` as ``[batch, heads, length, size]``; keys may come so."""
    dims = emitter.shape(data)
    if len(dims) == 4:
        return data
    batch, length, width = dims
    apart = emitter.reshaped(data, [batch, length, heads, divided(width, heads)])
    return emitter.emit(relax.op.permute_dims(apart, [0, 2, 1, 3]))


def _packed(emitter: Emitter, data: relax.Expr, at: int) -> relax.Expr:
    batch, length, heads, _, size = emitter.shape(data)
    part = emitter.emit(relax.op.strided_slice(data, [3], [at], [at + 1], [1], assume_inbound=True))
    apart = emitter.reshaped(part, [batch, length, heads, size])
    return emitter.emit(relax.op.permute_dims(apart, [0, 2, 1, 3]))


@converts("Attention", domain=_DOMAIN)
def _attention(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """With its own projection of queries, keys and values by one product."""
    if node.attribute("do_rotary", 0) or node.input(6) is not None:
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: rotary embeddings or past_sequence_length; expected none"
        )
    emit, heads = emitter.emit, node.attributes["num_heads"]
    data, weights = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    batch, length, _ = emitter.shape(data)
    _, width = emitter.shape(weights)
    if not isinstance(width, int):
        raise NotTaken
    sizes = node.attribute("qkv_hidden_sizes") or [width // 3] * 3
    projected = emit(relax.op.matmul(data, weights))
    if node.input(2) is not None:
        projected = emit(relax.op.add(projected, emitter.tensor(node.input(2))))
    parts, begin = [], 0
    for size in sizes:
        end = begin + size
        part = emit(relax.op.strided_slice(projected, [2], [begin], [end], [1], assume_inbound=True))
        apart = emitter.reshaped(part, [batch, length, heads, size // heads])
        parts.append(emit(relax.op.permute_dims(apart, [0, 2, 1, 3])))
        begin = end
    query, key, value = parts
    past = node.input(4)
    if past is not None:
        before = [_half(emitter, emitter.tensor(past), at) for at in (0, 1)]
        key, value = (
            emit(relax.op.concat([old, new], 2)) for old, new in zip(before, (key, value), strict=True)
        )
    masks = Masks(
        node.input(5),
        node.input(3),
        bool(node.attribute("unidirectional", 0)),
        node.attribute("mask_filter_value", -10000.0),
    )
    result = attended(emitter, node, Heads(query, key, value), masks, node.attribute("scale", 0.0) or None)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (result,)
    return result, emit(relax.op.stack([key, value], 0))


def _half(emitter: Emitter, data: relax.Expr, at: int) -> relax.Expr:
    part = emitter.emit(relax.op.strided_slice(data, [0], [at], [at + 1], [1], assume_inbound=True))
    return emitter.reshaped(part, emitter.shape(data)[1:])


def attended(emitter: Emitter, node: Node, heads: Heads, masks: Masks, scale: float | None) -> relax.Expr:
    """Softmax of scaled products, times the values: ``[batch, length, heads * size]``."""
    emit, dtype = emitter.emit, dtype_of(heads.query)
    query, key, value = (_wide(emitter, part) for part in (heads.query, heads.key, heads.value))
    batch, count, length, size = emitter.shape(query)
    total, inner = emitter.shape(key)[2], emitter.shape(value)[3]
    if scale is None:
        if not isinstance(size, int):
            raise NotTaken
        scale = 1.0 / math.sqrt(size)
    turned = emit(relax.op.permute_dims(key, [0, 1, 3, 2]))
    scores = emit(relax.op.multiply(relax.op.matmul(query, turned), constant(scale, "float32")))
    for bias in (masks.bias, _key_mask(emitter, node, masks, [batch, length, total])):
        if bias is not None:
            scores = emit(relax.op.add(scores, _wide(emitter, emitter.tensor(bias))))
    if masks.causal:
        scores = _causal(emitter, scores, simplified(expression(total) - length), masks.filtered)
    weights = emit(relax.op.nn.softmax(scores, -1))
    result = emit(relax.op.permute_dims(emit(relax.op.matmul(weights, value)), [0, 2, 1, 3]))
    joined = emitter.reshaped(result, [batch, length, simplified(count * inner)])
    return joined if dtype == "float32" else emit(relax.op.astype(joined, dtype))


def _wide(emitter: Emitter, value: Value) -> relax.Expr:
    data = emitter.tensor(value)
    return data if dtype_of(data) == "float32" else emitter.emit(relax.op.astype(data, "float32"))


def _key_mask(emitter: Emitter, node: Node, masks: Masks, dims: list[Dim]) -> relax.Expr | None:
    """Returns the term added for keys that do not count."""
    if masks.keys is None:
        return None
    batch = dims[0]
    mask = emitter.tensor(masks.keys)
    shape = emitter.shape(mask)
    if len(shape) == 1:
        if not same(shape[0], batch):
            if same(shape[0], simplified(2 * expression(batch))):
                return _between(emitter, mask, dims, masks.filtered)
            raise UnsupportedError(
                f"{emitter.importer.called(node)}: a mask of {shape[0]} numbers for {batch} rows; "
                "expected one or two for each"
            )
        return _between(emitter, mask, dims, masks.filtered)
    if len(shape) == 4:
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: a mask of 4 dimensions; expected 1 to 3, or attention_bias"
        )
    apart = emitter.reshaped(
        mask, [shape[0], 1, 1, shape[1]] if len(shape) == 2 else [shape[0], 1, *shape[1:]]
    )
    missing = relax.op.subtract(constant(1.0, "float32"), relax.op.astype(apart, "float32"))
    return emitter.emit(relax.op.multiply(missing, constant(masks.filtered, "float32")))


def _between(emitter: Emitter, ends: relax.Expr, dims: list[Dim], filtered: float) -> relax.Expr:
    """Keys before the end of each row, and behind its start where that is stated after all ends."""
    batch, _, total = dims
    both = not same(emitter.shape(ends)[0], batch)

    def kernel(ends: te.Tensor, batch: tirx.Expr, total: tirx.Expr) -> te.Tensor:
        def element(row: tirx.Var, _a: tirx.Var, _b: tirx.Var, at: tirx.Var) -> tirx.Expr:
            inside = at < ends[row].astype("int64")
            if both:
                inside = tirx.And(inside, at >= ends[row + batch].astype("int64"))
            return tirx.if_then_else(inside, tirx.const(0, "float32"), tirx.const(filtered, "float32"))

        return te.compute((batch, 1, 1, total), element, "mask")

    return emitter.builder.emit_te(
        kernel, ends, expression(batch), expression(total), primfunc_name_hint="key_mask"
    )


def _causal(emitter: Emitter, scores: relax.Expr, before: Dim, filtered: float) -> relax.Expr:
    """Scores of elements that come later, replaced; ``before`` elements came before the first query."""

    def kernel(tensor: te.Tensor, before: tirx.Expr) -> te.Tensor:
        def element(row: tirx.Var, head: tirx.Var, query: tirx.Var, key: tirx.Var) -> tirx.Expr:
            seen = key <= query + before
            return tirx.if_then_else(seen, tensor(row, head, query, key), tirx.const(filtered, "float32"))

        return te.compute(tensor.shape, element, "causal")

    return emitter.builder.emit_te(kernel, scores, expression(before), primfunc_name_hint="causal")
