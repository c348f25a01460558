"""Concat and Tile where their first versions mean something else than those that TVM converts."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...node import Emitter, Node, NotTaken
from ...values import Value, rank_of
from ..table import converts


@converts("Concat")
def _concat(emitter: Emitter, node: Node) -> Value:
    """Along axis 1 where the first version states none."""
    if node.opset >= 4 or node.attribute("axis") is not None:
        raise NotTaken
    return emitter.emit(relax.op.concat([emitter.tensor(value) for value in node.inputs], 1))


@converts("Tile")
def _tile(emitter: Emitter, node: Node) -> Value:
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
