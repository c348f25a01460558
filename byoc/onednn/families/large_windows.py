"""Averages over large windows in stages, so that rounding errors stay small (see ``core.long_sums``).

Before   average over windows of 1024 x 1024
After    averages over 1 x 1024, then over 1024 x 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tvm_mxplan.core.long_sums import fits, stages, terms_at_once


@dataclass(frozen=True)
class Windows:
    """Windows of an average over the spatial axes, and the extents that they make; all by axis.

    Attributes
    ----------
    padding : in front of each axis.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    extents: tuple[int, ...]


def window_stages(windows: Windows, source: tuple[int, ...]) -> list[Windows]:
    """Averages that together are the one over ``windows`` of an image of the extents ``source``.

    One axis after the other, the last one first, where a window holds too many terms; an axis that one
    window covers in several stages if need be.
    """
    limit = terms_at_once()
    if math.prod(windows.kernel) <= limit:
        return [windows]
    found: list[Windows] = []
    extents = source
    for axis in reversed(range(len(source))):
        size, stride, before = windows.kernel[axis], windows.strides[axis], windows.padding[axis]
        if (size, stride, before) == (1, 1, 0):
            continue
        covers = windows.extents[axis] == 1 and size == source[axis] and before == 0
        if covers and fits(size, limit):
            parts, left = [], size
            for part in stages(size, limit):
                left //= part
                parts.append((part, part, 0, left))
        else:
            parts = [(size, stride, before, windows.extents[axis])]
        for part, step, front, extent in parts:
            extents = _with(extents, axis, extent)
            ones, zeros = (1,) * len(source), (0,) * len(source)
            along = _with(ones, axis, part), _with(ones, axis, step), _with(zeros, axis, front)
            found.append(Windows(*along, extents))
    return found


def _with(numbers: tuple[int, ...], axis: int, number: int) -> tuple[int, ...]:
    return (*numbers[:axis], number, *numbers[axis + 1 :])
