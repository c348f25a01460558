"""Converters of the operators before attention: EmbedLayerNormalization and RotaryEmbedding."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax

from .....errors import UnsupportedError
from .....operators.attention import rotary
from ...dimensions.dims import Dim, divided, expression
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of, rank_of, shape_of
from ..numbers import constant
from ..table import converts
from .normalization import layer_normalized

_DOMAIN = "com.microsoft"


@converts("EmbedLayerNormalization", domain=_DOMAIN)
def _embed_layer_normalization(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """The sum of the embeddings of words, places and segments, normalized; and the mask's lengths."""
    emit = emitter.emit
    ids = emitter.tensor(node.input(0))
    batch, length = emitter.shape(ids)
    words = emit(relax.op.take(emitter.tensor(node.input(2)), ids, axis=0))
    if node.input(8) is None:
        table = emitter.tensor(node.input(3))
        bounds = ([0], [expression(0)], [expression(length)], [expression(1)])
        places = emit(relax.op.strided_slice(table, *bounds, assume_inbound=False))
    else:
        places = emit(relax.op.take(emitter.tensor(node.input(3)), emitter.tensor(node.input(8)), axis=0))
    total = emit(relax.op.add(words, places))
    if node.input(1) is not None:
        segments = emit(relax.op.take(emitter.tensor(node.input(4)), emitter.tensor(node.input(1)), axis=0))
        total = emit(relax.op.add(total, segments))
    result = layer_normalized(emitter, total, node.input(5), node.input(6), node.attribute("epsilon", 1e-12))
    if node.input(7) is None:
        lengths = emit(relax.op.full(relax.ShapeExpr([expression(batch)]), constant(0, "int32")))
    else:
        mask = emit(relax.op.astype(emitter.tensor(node.input(7)), "int32"))
        lengths = emit(relax.op.sum(mask, [1]))
    return result, lengths, total


@dataclass(frozen=True)
class Rotation:
    """The rotation of heads: tables of cosines and sines by position, and which elements are pairs."""

    cosines: relax.Expr
    sines: relax.Expr
    interleaved: bool


@converts("RotaryEmbedding", domain=_DOMAIN)
def _rotary_embedding(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    if node.attribute("is_packed_batching", 0):
        raise UnsupportedError(f"{emitter.importer.called(node)}: packed batches; expected one row for each")
    rotation = Rotation(
        emitter.tensor(node.input(2)),
        emitter.tensor(node.input(3)),
        bool(node.attribute("interleaved", 0)),
    )
    dims = emitter.shape(data)
    heads = node.attribute("num_heads", 0)
    if len(dims) == 4:
        batch, _, length, _ = dims
        split = emitter.emit(relax.op.permute_dims(data, [0, 2, 1, 3]))
    else:
        batch, length, width = dims
        if heads:
            size = divided(width, heads)
        else:  # the tables are as wide as half a head
            (_, half) = emitter.shape(rotation.cosines)
            size = 2 * half
            heads = divided(width, size)
        split = emitter.reshaped(data, [batch, length, heads, size])
    positions = _positions(emitter, node.input(1), batch, length)
    turned = rotated(emitter, split, positions, rotation)
    if len(dims) == 4:
        return emitter.emit(relax.op.permute_dims(turned, [0, 2, 1, 3]))
    return emitter.reshaped(turned, dims)


def _positions(emitter: Emitter, value: Value, batch: Dim, length: Dim) -> relax.Expr:
    """A position for each element of each row; one number is that of the first."""
    given = emitter.tensor(value)
    if rank_of(given) == 2:
        return given
    if shape_of(given) not in ([1], []):
        raise NotTaken
    dtype = dtype_of(given)
    row = relax.op.arange(expression(0), expression(length), expression(1), dtype=dtype)
    row = emitter.emit(relax.op.add(emitter.emit(row), given))
    shape = relax.ShapeExpr([expression(batch), expression(length)])
    return emitter.emit(relax.op.broadcast_to(emitter.reshaped(row, [1, length]), shape))


def rotated(emitter: Emitter, data: relax.Expr, positions: relax.Expr, rotation: Rotation) -> relax.Expr:
    """Heads ``[batch, length, heads, size]`` turned by their positions ``[batch, length]``.

    Where the tables are narrower than half a head, the rest of the head stays.
    """
    _, half = emitter.shape(rotation.cosines)
    size = emitter.shape(data)[3]
    if not isinstance(half, int) or not isinstance(size, int):
        raise NotTaken
    cosines, sines = (
        # a row for each place, the same for all heads
        emitter.emit(relax.op.expand_dims(emitter.emit(relax.op.take(table, positions, axis=0)), 2))
        for table in (rotation.cosines, rotation.sines)
    )
    call = rotary(data, cosines, sines, width=2 * half, interleaved=rotation.interleaved)
    return emitter.emit(call)
