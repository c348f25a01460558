"""Reads by constant places along one axis after the other, as padding by mirrored edges has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import constant_of, shape_of

from . import checks

_MOST = 1 << 16
"""Places that a step names."""
_APART = 2
"""Along the last axis a gather is quicker than runs of fewer neighbours, in the mean."""


def places_of(takes: Sequence[relax.Call]) -> ir.GatherPlaces | None:
    """The step for a chain of ``take``; None for other than few known places of an axis each."""
    found: dict[int, np.ndarray] = {}
    for take in takes:
        axis = _axis(take)
        indices = constant_of(take.args[1])
        if axis is None or axis in found or indices is None or not _is_plain(take, axis, indices):
            return None
        found[axis] = indices
    if sum(map(len, found.values())) > _MOST:
        return None
    axes = tuple(sorted(found))
    return ir.GatherPlaces(axes, tuple(int(place) for axis in axes for place in found[axis]))


def _axis(take: relax.Call) -> int | None:
    return None if take.attrs.axis is None else int(take.attrs.axis) % take.ty.ndim


def _is_plain(take: relax.Call, axis: int, indices: np.ndarray) -> bool:
    """Whether indices are places of an axis of a known extent, and of the last one neighbours."""
    shape = shape_of(take.args[0])
    if checks.tensors_ok(take) or checks.take(take) or indices.ndim != 1 or indices.size == 0:
        return False
    extent = shape[axis] if shape else None
    if not isinstance(extent, int) or indices.min() < 0 or indices.max() >= extent:
        return False
    runs = 1 + int(np.count_nonzero(np.diff(indices) != 1))
    return axis + 1 < take.ty.ndim or runs * _APART <= indices.size
