"""Concat and Tile where first versions mean something else than what TVM converts, or sizes are named."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...dimensions.dims import expression, not_negative, product
from ...node import Emitter, Node, NotTaken
from ...values import Symbols, Value, rank_of
from ..table import converts


@converts("Concat")
def _concat(emitter: Emitter, node: Node) -> Value:
    """Along axis 1 where the first version states none."""
    if node.opset >= 4 or node.attribute("axis") is not None:
        raise NotTaken
    return emitter.emit(relax.op.concat([emitter.tensor(value) for value in node.inputs], 1))


@converts("Tile")
def _tile_along_one(emitter: Emitter, node: Node) -> Value:
    """The first version repeats along one axis, by numbers of any type."""
    if node.opset >= 6:
        raise NotTaken
    times, axis = (node.known(at) for at in (1, 2))
    rank = rank_of(node.input(0))
    if times is None or axis is None or rank is None:
        raise NotTaken
    counts = np.ones(rank, "int64")
    counts[int(axis.reshape(-1)[0])] = int(times.reshape(-1)[0])
    return emitter.emit(relax.op.tile(emitter.tensor(node.input(0)), counts.tolist()))


@converts("Tile", first_opset=6)
def _tile(emitter: Emitter, node: Node) -> Value:
    """By numbers that are named dimensions: broadcast along axes of their own, which are merged then."""
    data, times = node.input(0), node.input(1)
    if not isinstance(times, Symbols):
        raise NotTaken
    dims, repeats = emitter.shape(data), emitter.dims(times)
    if len(dims) != len(repeats) or not all(not_negative(repeat) for repeat in repeats):
        raise NotTaken
    pairs = list(zip(repeats, dims, strict=True))
    apart = emitter.reshaped(data, [size for dim in dims for size in (1, dim)])
    shape = relax.ShapeExpr([expression(size) for pair in pairs for size in pair])
    repeated = emitter.emit(relax.op.broadcast_to(emitter.tensor(apart), shape))
    return emitter.reshaped(repeated, [product(pair) for pair in pairs])
