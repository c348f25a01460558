"""Chooses the elements that are worked out again where all would take too long.

Kernels go wrong in whole pieces: a block, a tail behind the last whole block, a border that reads padding,
one image of a batch, one chunk of channels.  So every channel is worked out at each position that is taken,
and positions are taken along whole lines: through the first, the middle and the last position of all other
axes.  A line has each remainder of any block size, both borders and the tail.  Positions drawn at random
follow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from .drawing import Array


def positions(extents: Sequence[int], most: int) -> Array:
    """Flat indices into a tensor of these extents, in order; all of them where that are at most ``most``."""
    total = math.prod(extents)
    if total <= most:
        return np.arange(total)
    taken = [_flat(extents, corner) for corner in itertools.product(*({0, e - 1} for e in extents))]
    lines = [
        _flat(extents, [*(place(e) for e in extents[:axis]), at, *(place(e) for e in extents[axis + 1 :])])
        for place in (_first, _last, _middle)
        for axis in range(len(extents))
        for at in range(extents[axis])
    ]
    generator = np.random.default_rng(total)
    taken += [lines[at] for at in generator.permutation(len(lines))[:most]]
    drawn = generator.integers(0, total, most)
    return np.sort(np.fromiter(dict.fromkeys([*taken, *drawn.tolist()]), np.int64)[:most])


def slices(extent: int, most: int) -> Array:
    """Indices along one axis, in order: both ends, and others drawn at random; all where they are few."""
    if extent <= most:
        return np.arange(extent)
    ends = [*range(most // 4), *range(extent - most // 4, extent)]
    drawn = np.random.default_rng(extent).permutation(extent)[:most].tolist()
    return np.sort(np.fromiter(dict.fromkeys([*ends, *drawn]), np.int64)[:most])


def _first(_extent: int) -> int:
    return 0


def _middle(extent: int) -> int:
    return extent // 2


def _last(extent: int) -> int:
    return extent - 1


def _flat(extents: Sequence[int], index: Sequence[int]) -> int:
    flat = 0
    for extent, at in zip(extents, index, strict=True):
        flat = flat * extent + at
    return flat
