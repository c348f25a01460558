"""Reads and writes by constant indices that are regular: slices, and puts into them.

    take(x, 3, axis=0)                        -> reshape(x[3:4], ...)
    take(x, [[0, 2], [1, 3]], axis=0)         -> permute_dims(reshape(x, (2, 2, ...)), (1, 0, ...))
    take(x, [2, 3, 0, 1], axis=0)             -> concat((x[2:4], x[0:2]))
    gather_nd(x, [[[0, 2], [0, 3]]])          -> x[0:1, 2:4]
    gather_elements(x, [[1, ...]], axis=0)    -> x[1:2]
    scatter_nd(x, [[2], [4], [6]], u)         -> put(x, u, axis 0, begin 2, step 2)
    scatter_elements(x, [[1, ...]], u)        -> put(x, u, axis 0, begin 1)

Exporters write windows side by side so, and reads of and assignments to slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.operators.put import put

from ...relax_types import shape_of
from ..fold_constants import numbers_of
from ..rewriter import Site, is_call_to


@dataclass(frozen=True)
class _Run:
    """Elements ``begin``, ``begin + step``, ... of an axis, ``count`` of them."""

    begin: int
    step: int
    count: int

    @property
    def end(self) -> int:
        return self.begin + self.step * (self.count - 1) + 1


_FEW, _LONG = 4, 16
"""So many stretches of an axis are rather joined than taken element by element, if in each so many elements
lie side by side."""
Runs = Mapping[int, _Run]
"""By axis."""


@dataclass(frozen=True)
class _Places:
    """A run whose elements stand in several axes, taken in some order: 0 2, 1 3 are those of 0 1 2 3, turned.

    Attributes
    ----------
    shape : of the indices.
    order : their axes, those along which they rise the most first.
    """

    run: _Run
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def counts(self) -> list[int]:
        """The extents in the order of the run."""
        return [self.shape[at] for at in self.order]


def of_regular_places(site: Site, call: relax.Call) -> relax.Expr | None:
    """The call as slices, or as puts; None where its indices are no constants, or not regular."""
    rule = _RULES[call.op.name.removeprefix("relax.")]
    indices = _constant(site, call.args[1])
    if indices is None or indices.size == 0 or shape_of(call) is None or shape_of(call.args[0]) is None:
        return None
    return rule(site, call, indices.astype("int64"))


def _constant(site: Site, expr: relax.Expr) -> np.ndarray | None:
    """The numbers of a constant, or of several that are stacked."""
    numbers = numbers_of(site, expr)
    stack = site.definition(expr)
    if numbers is not None or not is_call_to(stack, "stack"):
        return numbers
    fields = site.definition(stack.args[0])
    parts = [numbers_of(site, field) for field in fields.fields] if isinstance(fields, relax.Tuple) else []
    if not parts or any(part is None for part in parts):
        return None
    return np.stack(parts, int(stack.attrs.axis))  # type: ignore[arg-type]


def _take(site: Site, call: relax.Call, indices: np.ndarray) -> relax.Expr | None:
    data, dims = call.args[0], _dims(call.args[0])
    if call.attrs.axis is None:
        return None
    axis = int(call.attrs.axis) % len(dims)
    places = _places(indices) or _places(_in_rows(indices))
    if places is None:
        return _neighbours_joined(site, data, axis, indices)
    if not _fits(data, {axis: places.run}):
        return None
    part = _sliced(site, data, {axis: places.run})
    apart = _turned_back(site, part, dims[:axis], [places], dims[axis + 1 :])
    return relax.op.reshape(apart, call.ty.shape)


def _neighbours_joined(site: Site, data: relax.Expr, axis: int, indices: np.ndarray) -> relax.Expr | None:
    """A few stretches of an axis behind each other, as rolling it reads them; None for others.

    Those that read an element twice stay, as padding with an image's own elements does.
    """
    if indices.ndim != 1 or len(np.unique(indices)) < len(indices):
        return None
    ends = [0, *(np.flatnonzero(np.diff(indices) != 1) + 1).tolist(), len(indices)]
    stretches = [_Run(int(indices[begin]), 1, end - begin) for begin, end in pairwise(ends)]
    row = math.prod(extent for extent in (shape_of(data) or ())[axis + 1 :] if isinstance(extent, int))
    if len(stretches) > _FEW or min(one.count for one in stretches) * row < _LONG:
        return None
    if any(one.begin < 0 or not _fits(data, {axis: one}) for one in stretches):
        return None
    return relax.op.concat([_sliced(site, data, {axis: one}) for one in stretches], axis)


def _gather(site: Site, call: relax.Call, indices: np.ndarray) -> relax.Expr | None:
    data = call.args[0]
    grid = None if int(call.attrs.batch_dims) else _grid(indices)
    if grid is None or not _fits(data, _runs(grid)):
        return None
    part = _sliced(site, data, _runs(grid))
    apart = _turned_back(site, part, [], grid, _dims(data)[len(grid) :])
    return relax.op.reshape(apart, call.ty.shape)


def _gather_elements(site: Site, call: relax.Call, indices: np.ndarray) -> relax.Expr | None:
    runs = _box(indices, int(call.attrs.axis) % indices.ndim)
    if runs is None or not _fits(call.args[0], runs):
        return None
    return _sliced(site, call.args[0], runs)


def _scatter(site: Site, call: relax.Call, indices: np.ndarray) -> relax.Expr | None:
    data, _, updates = call.args
    grid = _grid(indices) if call.attrs.reduction in ("update", "add") else None
    if grid is None or not _fits(data, _runs(grid)):
        return None
    rest = _dims(data)[len(grid) :]
    part = site.emit(relax.op.reshape(updates, [*(extent for one in grid for extent in one.shape), *rest]))
    order = _order([one.order for one in grid], 0, len(rest))
    if order != sorted(order):
        part = site.emit(relax.op.permute_dims(part, order))
    part = site.emit(relax.op.reshape(part, [*(one.run.count for one in grid), *rest]))
    if call.attrs.reduction == "add":  # no place is written twice
        part = site.emit(relax.op.add(_sliced(site, data, _runs(grid)), part))
    return _put(site, data, part, _runs(grid))


def _scatter_elements(site: Site, call: relax.Call, indices: np.ndarray) -> relax.Expr | None:
    data, _, updates = call.args
    runs = None if call.attrs.reduction != "update" else _box(indices, int(call.attrs.axis) % indices.ndim)
    if runs is None or not _fits(data, runs):
        return None
    return _put(site, data, updates, runs)


_RULES: dict[str, Callable[[Site, relax.Call, np.ndarray], relax.Expr | None]] = {
    "take": _take,
    "gather_nd": _gather,
    "gather_elements": _gather_elements,
    "scatter_nd": _scatter,
    "scatter_elements": _scatter_elements,
}
OPERATORS = tuple(_RULES)


def _run(numbers: np.ndarray) -> _Run | None:
    """Numbers in one row that rise by the same step, from 0 or more on."""
    step = int(numbers[1] - numbers[0]) if len(numbers) > 1 else 1
    rises = numbers[0] >= 0 and step > 0 and bool(np.all(np.diff(numbers) == step))
    return _Run(int(numbers[0]), step, len(numbers)) if rises else None


def _places(indices: np.ndarray) -> _Places | None:
    steps = [int(np.diff(indices.take([0, -1], at), axis=at).flat[0]) for at in range(indices.ndim)]
    order = sorted(range(indices.ndim), key=lambda at: -steps[at])
    run = _run(indices.transpose(order).reshape(-1))
    return None if run is None else _Places(run, indices.shape, tuple(order))


def _in_rows(indices: np.ndarray) -> np.ndarray:
    """Indices in rows that end where they first rise by another step; as they are, where rows differ."""
    flat = indices.reshape(-1)
    others = np.flatnonzero(np.diff(flat) != flat[1] - flat[0]) if flat.size > 1 else np.array([])
    length = int(others[0]) + 1 if others.size else flat.size
    return flat.reshape(-1, length) if flat.size % length == 0 else indices


def _grid(indices: np.ndarray) -> list[_Places] | None:
    """The places of coordinates [..., axes] that lie in a grid, in its order; None for others."""
    outer = indices.shape[:-1]
    found, claimed = list[_Places](), 0
    for part in np.moveaxis(indices, -1, 0):
        varies = [at for at in range(len(outer)) if np.any(part != part.take([0], at))]
        end = varies[-1] + 1 if varies else claimed
        own = range(claimed, end)
        if any(at not in own for at in varies) or any(outer[at] > 1 and at not in varies for at in own):
            return None
        places = _places(part[tuple(slice(None) if at in own else 0 for at in range(len(outer)))])
        if places is None:
            return None
        found.append(places)
        claimed = end
    return found if all(extent == 1 for extent in outer[claimed:]) else None


def _runs(grid: Sequence[_Places]) -> Runs:
    return {axis: places.run for axis, places in enumerate(grid)}


def _order(orders: Sequence[Sequence[int]], before: int, behind: int) -> list[int]:
    """The orders of groups of axes as one, with axes before and behind them."""
    found = list(range(before))
    for order in orders:
        found += [len(found) + at for at in order]
    return [*found, *range(len(found), len(found) + behind)]


def _turned_back(
    site: Site,
    part: relax.Expr,
    before: Sequence[tvm.ir.Expr],
    grid: Sequence[_Places],
    behind: Sequence[tvm.ir.Expr],
) -> relax.Expr:
    """Elements of runs in the order in which the indices name them."""
    order = _order([np.argsort(one.order).tolist() for one in grid], len(before), len(behind))
    if order == sorted(order):
        return part
    apart = [*before, *(count for one in grid for count in one.counts), *behind]
    return site.emit(relax.op.permute_dims(site.emit(relax.op.reshape(part, apart)), order))


def _box(indices: np.ndarray, axis: int) -> Runs | None:
    """The runs by axis of indices that depend on the place along their own axis alone; None for others."""
    row = np.moveaxis(indices, axis, 0).reshape(indices.shape[axis], -1)
    run = _run(row[:, 0]) if np.all(row == row[:, :1]) else None
    if run is None:
        return None
    return {at: run if at == axis else _Run(0, 1, count) for at, count in enumerate(indices.shape)}


def _dims(tensor: relax.Expr) -> Sequence[tvm.ir.Expr]:
    return list(tensor.ty.shape.values)


def _fits(data: relax.Expr, runs: Runs) -> bool:
    """Whether runs end within axes of known extents."""
    extents = shape_of(data) or ()
    known = {axis: extents[axis] for axis in runs if axis < len(extents)}
    return len(known) == len(runs) and all(
        isinstance(extent, int) and runs[axis].end <= extent for axis, extent in known.items()
    )


def _parts(data: relax.Expr, runs: Runs) -> Runs:
    """The runs that are not of all elements of their axes."""
    extents = shape_of(data) or ()
    return {axis: run for axis, run in runs.items() if run != _Run(0, 1, extents[axis])}  # type: ignore[arg-type]


def _sliced(site: Site, data: relax.Expr, runs: Runs) -> relax.Expr:
    some = _parts(data, runs)
    if not some:
        return data
    bounds = ([getattr(run, name) for run in some.values()] for name in ("begin", "end", "step"))
    return site.emit(relax.op.strided_slice(data, list(some), *bounds, assume_inbound=True))


def _put(site: Site, data: relax.Expr, part: relax.Expr, runs: Runs) -> relax.Expr:
    """The tensor with a part in a box of it: put along one axis into what is put along the others."""
    some = _parts(data, runs)
    if not some:
        return part
    axis, run = next(iter(some.items()))
    rest = {at: other for at, other in some.items() if at != axis}
    if rest:
        part = site.emit(_put(site, _sliced(site, data, {axis: run}), part, rest))
    return put(data, part, axis, run.begin, run.step)
