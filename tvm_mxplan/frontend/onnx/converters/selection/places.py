"""Gathers and scatters by constant indices, which are counted from the front here, not when the model runs.

What of them is a slice, or a put into one, shows afterwards (``passes/canonicalize/regular_places.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from .....errors import InvalidInputError
from ...dimensions.dims import Dim
from ...node import Emitter, Node, NotTaken
from ...values import Value
from ..table import converts


@converts("Gather")
def _gather_along(emitter: Emitter, node: Node) -> Value:
    """Indices of a call are checked and counted from the end when it runs."""
    data, indices = emitter.tensor(node.input(0)), node.input(1)
    axis = node.attribute("axis", 0) % len(emitter.shape(data))
    size = emitter.shape(data)[axis]
    if not isinstance(indices, np.ndarray) or not isinstance(size, int):
        return emitter.emit(relax.op.take(data, emitter.tensor(indices), axis, mode="fast"))
    outside = indices[(indices < -size) | (indices >= size)]
    if outside.size:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: index {outside[0]} is outside of a dimension of {size}; "
            f"expected {-size} to {size - 1}"
        )
    return emitter.emit(relax.op.take(data, emitter.tensor(_from_the_front(indices, size)), axis))


@converts("ScatterND")
def _scatter(emitter: Emitter, node: Node) -> Value:
    data, updates = emitter.tensor(node.input(0)), emitter.tensor(node.input(2))
    places = emitter.tensor(_coordinates(node, emitter.shape(data)))
    return emitter.emit(relax.op.scatter_nd(data, places, updates, reduction_of(node)))


@converts("GatherND")
def _gather(emitter: Emitter, node: Node) -> Value:
    if node.attribute("batch_dims", 0):
        raise NotTaken
    data = emitter.tensor(node.input(0))
    return emitter.emit(relax.op.gather_nd(data, emitter.tensor(_coordinates(node, emitter.shape(data)))))


@converts("GatherElements")
def _gather_elements(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    axis, indices = _along(node, emitter.shape(data))
    return emitter.emit(relax.op.gather_elements(data, emitter.tensor(indices), axis))


@converts("Scatter", "ScatterElements")
def _scatter_elements(emitter: Emitter, node: Node) -> Value:
    data, updates = emitter.tensor(node.input(0)), emitter.tensor(node.input(2))
    axis, indices = _along(node, emitter.shape(data))
    places = emitter.tensor(indices)
    return emitter.emit(relax.op.scatter_elements(data, places, updates, axis, reduction_of(node)))


def reduction_of(node: Node) -> str:
    """TVM's name for the way in which a node puts elements on others."""
    name = node.text("reduction", "none")
    if name not in _REDUCTIONS:
        raise NotTaken
    return _REDUCTIONS[name]


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _coordinates(node: Node, extents: Sequence[Dim]) -> np.ndarray:
    """Constant coordinates in a tensor's first axes."""
    indices = node.known(1)
    if indices is None or indices.size == 0 or indices.shape[-1] > len(extents):
        raise NotTaken
    parts = np.moveaxis(indices, -1, 0)
    return np.stack([_from_the_front(*pair) for pair in zip(parts, extents, strict=False)], -1)


def _along(node: Node, extents: Sequence[Dim]) -> tuple[int, np.ndarray]:
    """The axis of a node, and constant indices along it; as many as elements along all others."""
    indices, axis = node.known(1), node.attribute("axis", 0)
    if indices is None or indices.size == 0 or not -len(extents) <= axis < len(extents):
        raise NotTaken
    axis %= len(extents)
    if any(
        pair[0] != pair[1] for at, pair in enumerate(zip(indices.shape, extents, strict=True)) if at != axis
    ):
        raise NotTaken
    return axis, _from_the_front(indices, extents[axis])


def _from_the_front(indices: np.ndarray, extent: Dim) -> np.ndarray:
    if not isinstance(extent, int) or np.any((indices < -extent) | (indices >= extent)):
        raise NotTaken
    return np.where(indices < 0, indices + extent, indices).astype("int64")
