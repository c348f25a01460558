"""Gathers and scatters whose indices are constants: slices and puts where they stand at regular places.

    ScatterND(x, [[2], [4], [6]], u)          x[2:7:2] = u
    ScatterElements(x, [[1, ...]], u)         x[1:2] = u           (axis 0, indices the same in a row)
    GatherND(x, [[[0, 2], [0, 3]]])           x[0:1, 2:4]

PyTorch's exporter writes reads of and assignments to slices so.  Other constant indices are counted from the
front here, and not when the model runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ....operators.put import put
from ..dimensions.dims import Dim
from ..node import Emitter, Node, NotTaken
from ..values import Value
from .table import converts


@dataclass(frozen=True)
class _Run:
    """Elements ``begin``, ``begin + step``, ... of an axis, ``count`` of them."""

    begin: int
    step: int
    count: int

    @property
    def end(self) -> int:
        return self.begin + self.step * (self.count - 1) + 1

    def is_whole(self, extent: Dim) -> bool:
        return isinstance(extent, int) and (self.begin, self.step, self.count) == (0, 1, extent)


@converts("ScatterND")
def _scatter(emitter: Emitter, node: Node) -> Value:
    data, updates = emitter.tensor(node.input(0)), emitter.tensor(node.input(2))
    extents = emitter.shape(data)
    indices = _coordinates(node, extents)
    depth = indices.shape[-1]
    reduction = _REDUCTIONS[node.text("reduction", "none")]
    runs = _grid(indices) if reduction == "update" else None
    if runs is None:
        return emitter.emit(relax.op.scatter_nd(data, emitter.tensor(indices), updates, reduction))
    part = emitter.reshaped(updates, [*(run.count for run in runs), *extents[depth:]])
    return _put(emitter, data, emitter.tensor(part), dict(enumerate(runs)))


@converts("GatherND")
def _gather(emitter: Emitter, node: Node) -> Value:
    if node.attribute("batch_dims", 0):
        raise NotTaken
    data = emitter.tensor(node.input(0))
    extents = emitter.shape(data)
    indices = _coordinates(node, extents)
    runs = _grid(indices)
    if runs is None:
        return emitter.emit(relax.op.gather_nd(data, emitter.tensor(indices)))
    part = _sliced(emitter, data, dict(enumerate(runs)))
    return emitter.reshaped(part, [*indices.shape[:-1], *extents[len(runs) :]])


@converts("GatherElements")
def _gather_elements(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    axis, indices = _along(emitter, node, emitter.shape(data))
    runs = _box(indices, axis)
    if runs is None:
        return emitter.emit(relax.op.gather_elements(data, emitter.tensor(indices), axis))
    return _sliced(emitter, data, runs)


@converts("Scatter", "ScatterElements")
def _scatter_elements(emitter: Emitter, node: Node) -> Value:
    """One of other places is left to those behind, with the indices as they are."""
    if node.text("reduction", "none") != "none":
        raise NotTaken
    data, updates = emitter.tensor(node.input(0)), emitter.tensor(node.input(2))
    axis, indices = _along(emitter, node, emitter.shape(data))
    runs = _box(indices, axis)
    if runs is None:
        raise NotTaken
    return _put(emitter, data, updates, runs)


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}
"""TVM's names for the ways in which ONNX puts elements on others."""


def _coordinates(node: Node, extents: Sequence[Dim]) -> np.ndarray:
    """Constant coordinates in a tensor's first axes, from the front."""
    indices = node.known(1)
    if indices is None or indices.size == 0 or indices.shape[-1] > len(extents):
        raise NotTaken
    parts = np.moveaxis(indices, -1, 0)
    return np.stack([_from_the_front(*pair) for pair in zip(parts, extents, strict=False)], -1)


def _along(emitter: Emitter, node: Node, extents: Sequence[Dim]) -> tuple[int, np.ndarray]:
    """The axis of a node, and constant indices along it from the front; fewer than elements along others."""
    indices, axis = node.known(1), node.attribute("axis", 0)
    if indices is None or indices.size == 0 or not -len(extents) <= axis < len(extents):
        raise NotTaken
    axis %= len(extents)
    for at, (count, extent) in enumerate(zip(indices.shape, extents, strict=True)):
        if at != axis and not (isinstance(extent, int) and count <= extent):
            raise NotTaken
    return axis, _from_the_front(indices, extents[axis])


def _from_the_front(indices: np.ndarray, extent: Dim) -> np.ndarray:
    if not isinstance(extent, int) or indices.min() < -extent or indices.max() >= extent:
        raise NotTaken
    return np.where(indices < 0, indices + extent, indices).astype("int64")


def _run(numbers: np.ndarray) -> _Run | None:
    """Numbers in one row that rise by the same step."""
    step = int(numbers[1] - numbers[0]) if len(numbers) > 1 else 1
    rises = step > 0 and bool(np.all(np.diff(numbers) == step))
    return _Run(int(numbers[0]), step, len(numbers)) if rises else None


def _grid(indices: np.ndarray) -> list[_Run] | None:
    """The runs of coordinates [..., axes] that lie in a grid, in its order; None for others."""
    *outer, depth = indices.shape
    runs, claimed = [], 0
    for part in np.moveaxis(indices, -1, 0):
        varies = [at for at in range(len(outer)) if np.any(part != part.take([0], at))]
        if len(varies) > 1 or (varies and any(outer[at] > 1 for at in range(claimed, varies[0]))):
            return None
        if varies and varies[0] < claimed:
            return None
        first = tuple(slice(None) if at in varies else 0 for at in range(len(outer)))
        run = _run(np.atleast_1d(part[first]))
        if run is None:
            return None
        runs.append(run)
        claimed = varies[0] + 1 if varies else claimed
    return runs if len(runs) == depth and all(extent == 1 for extent in outer[claimed:]) else None


def _box(indices: np.ndarray, axis: int) -> dict[int, _Run] | None:
    """The runs by axis of indices that depend on the place along their own axis alone; None for others."""
    row = np.moveaxis(indices, axis, 0).reshape(indices.shape[axis], -1)
    run = _run(row[:, 0]) if np.all(row == row[:, :1]) else None
    if run is None:
        return None
    return {at: run if at == axis else _Run(0, 1, count) for at, count in enumerate(indices.shape)}


def _sliced(emitter: Emitter, data: relax.Expr, runs: Mapping[int, _Run]) -> relax.Expr:
    extents = emitter.shape(data)
    some = {axis: run for axis, run in runs.items() if not run.is_whole(extents[axis])}
    if not some:
        return data
    bounds = ([getattr(run, name) for run in some.values()] for name in ("begin", "end", "step"))
    return emitter.emit(relax.op.strided_slice(data, list(some), *bounds, assume_inbound=True))


def _put(emitter: Emitter, data: relax.Expr, part: relax.Expr, runs: Mapping[int, _Run]) -> relax.Expr:
    """The tensor with a part in a box of it: put along one axis into what is put along the others."""
    extents = emitter.shape(data)
    some = {axis: run for axis, run in runs.items() if not run.is_whole(extents[axis])}
    if not some:
        return part
    axis, run = next(iter(some.items()))
    rest = {at: other for at, other in some.items() if at != axis}
    inner = _put(emitter, _sliced(emitter, data, {axis: run}), part, rest) if rest else part
    return emitter.emit(put(data, inner, axis, run.begin, run.step))
