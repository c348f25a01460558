"""Steps that move numbers, and interpolation."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate
from .operands import Operands, absolute


def concat(attrs: ir.Concat, operands: Operands) -> Estimate:
    return Estimate(np.concatenate(operands.by_role["src"], attrs.axis))


def shuffle(attrs: ir.Shuffle, operands: Operands) -> Estimate:
    shape, axis = operands.shape, attrs.axis
    split = (*shape[:axis], attrs.groups, shape[axis] // attrs.groups, *shape[axis + 1 :])
    return Estimate(operands.src.reshape(split).swapaxes(axis, axis + 1).reshape(shape))


def pad(attrs: ir.Pad, operands: Operands) -> Estimate:
    pairs = [
        (begin, whole - size - begin)
        for begin, size, whole in zip(attrs.begin, operands.src.shape, operands.shape, strict=True)
    ]
    return Estimate(np.pad(operands.src, pairs, constant_values=np.float32(attrs.value)))


def slice_(attrs: ir.Slice, operands: Operands) -> Estimate:
    box = tuple(slice(b, b + size) for b, size in zip(attrs.begin, operands.shape, strict=True))
    return Estimate(operands.src[box])


def strided_slice(attrs: ir.StridedSlice, operands: Operands) -> Estimate:
    value = operands.src
    for axis, (begin, step, count) in enumerate(zip(attrs.begin, attrs.steps, operands.shape, strict=True)):
        value = value.take(begin + step * np.arange(count), axis)
    return Estimate(value)


def gather(attrs: ir.Gather, operands: Operands) -> Estimate:
    return Estimate(np.take(operands.src, operands["indices"].astype(np.int64), attrs.axis))


def gather_nd(attrs: ir.GatherNd, operands: Operands) -> Estimate:
    indices = operands["indices"].astype(np.int64)
    axes = attrs.batch_axes
    batch = np.indices((*indices.shape[:axes], *[1] * (indices.ndim - 1 - axes)))[:axes]
    return Estimate(operands.src[(*batch, *np.moveaxis(indices, -1, 0))])


def gather_places(attrs: ir.GatherPlaces, operands: Operands) -> Estimate:
    value, first = operands.src, 0
    for axis in attrs.axes:
        count = operands.shape[axis]
        value = np.take(value, attrs.places[first : first + count], axis)
        first += count
    return Estimate(value)


def put(attrs: ir.Put, operands: Operands) -> Estimate:
    value, part = operands.src.copy(), operands["part"]
    places = [
        b + s * np.arange(count) for b, s, count in zip(attrs.begin, attrs.steps, part.shape, strict=True)
    ]
    value[np.ix_(*places)] = part
    return Estimate(value)


def scatter(attrs: ir.Scatter, operands: Operands) -> Estimate:
    """One update after the other; sums of float32 may be rounded as often as a place has updates."""
    value, indices = operands.src.copy(), operands["indices"].astype(np.int64)
    updates, depth = operands["updates"], indices.shape[-1]
    entries = np.moveaxis(indices, -1, 0).reshape(depth, -1)
    rows = updates.reshape(-1, *value.shape[depth:])
    return _updated(attrs.algorithm, value, entries, rows)


def gather_elements(attrs: ir.GatherElements, operands: Operands) -> Estimate:
    return Estimate(operands.src[tuple(_places(attrs.axis, operands["indices"]))])


def scatter_elements(attrs: ir.ScatterElements, operands: Operands) -> Estimate:
    entries = np.stack(_places(attrs.axis, operands["indices"])).reshape(operands.src.ndim, -1)
    return _updated(attrs.algorithm, operands.src.copy(), entries, operands["updates"].reshape(-1))


def _places(axis: int, indices: Array) -> list[Array]:
    """The index along each axis of what ``indices`` name along one."""
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = indices.astype(np.int64)
    return places


def _updated(algorithm: str, value: Array, entries: Array, rows: Array) -> Estimate:
    """``value`` with one update after the other, which ``entries`` have an index for each axis of."""
    if algorithm == "update":
        for row, entry in zip(rows, entries.T, strict=True):
            value[tuple(entry)] = row
        return Estimate(value)
    before = absolute(value).astype(np.float64)
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum}[algorithm]
    ufunc.at(value, tuple(entries), rows)
    if algorithm != "add" or value.dtype.kind != "f":
        return Estimate(value)
    size, most = before, np.zeros(value.shape)
    np.add.at(size, tuple(entries), absolute(rows).astype(np.float64))
    np.add.at(most, tuple(entries), np.ones(rows.shape))
    return Estimate(value, most * UNIT_ROUNDOFF * (1 + most * UNIT_ROUNDOFF) * size)


def reorder(_attrs: ir.Reorder, operands: Operands) -> Estimate:
    return Estimate(operands.src)


def resampling(attrs: ir.Resampling, operands: Operands) -> Estimate:
    """Half-pixel centres, one axis after the other."""
    value, size, relative = operands.src, np.abs(operands.src), 0.0
    for axis in range(2, value.ndim):
        extent, count = value.shape[axis], operands.shape[axis]
        place = (np.arange(count) + 0.5) * extent / count - 0.5
        if attrs.algorithm == "nearest":
            value = value.take(np.clip(np.floor(place + 0.5).astype(int), 0, extent - 1), axis)
            continue
        low = np.floor(place).astype(int)
        weight = (place - low).reshape([-1 if other == axis else 1 for other in range(value.ndim)])
        ends = [np.clip(low + at, 0, extent - 1) for at in (0, 1)]
        left, right = (value.take(end, axis) for end in ends)
        value = left * (1 - weight) + right * weight
        size = size.take(ends[0], axis) + size.take(ends[1], axis)
        relative += (2 * extent + 4) * UNIT_ROUNDOFF  # a place is rounded before its fraction is taken
    return Estimate(value, relative * size if relative else 0.0)
