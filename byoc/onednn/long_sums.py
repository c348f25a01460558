"""Long sums in stages, so that rounding errors stay small: sums of sums, each of a bounded number of terms.

Before   average over windows of 1024 x 1024
After    averages over 1 x 1024, then over 1024 x 1

Before   sum over the last axis of [8, 1000000]
After    sums over the last axis of [8, 1000, 1000], then over that of [8, 1000]

A sum of n terms, one after the other, errs by up to n units of roundoff, and by about a sixth of that where
the terms are alike; in stages of n1, n2, ... terms by up to n1 + n2 + ... of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_UNIT_ROUNDOFF = 2.0**-24
_TOLERATED = 2.0**-14  # relative error of one stage, at worst
# Sums that a reduction makes at once along its axis: the narrowest vectors that oneDNN generates code for.
LANES = 4


def terms_at_once(lanes: int = 1) -> int:
    """The most terms of one stage where ``lanes`` partial sums share them."""
    return int(_TOLERATED / _UNIT_ROUNDOFF) * lanes


def stages(terms: int, limit: int) -> list[int]:
    """Numbers of terms, at most ``limit`` each, the product of which is ``terms`` or little more.

    More only where ``terms`` has no such divisors: what is missing is to be filled with zeros.
    """
    if terms <= limit:
        return [terms]
    count = math.ceil(math.log(terms) / math.log(limit) - 1e-9)
    ideal = math.ceil(terms ** (1 / count))
    divisors = (n for n in range(min(limit, 2 * ideal), ideal // 4, -1) if terms % n == 0)
    size = next(divisors, ideal)
    return [size, *stages(math.ceil(terms / size), limit)]


def fits(terms: int, limit: int) -> bool:
    """True if ``terms`` can be had in stages without zeros."""
    return math.prod(stages(terms, limit)) == terms


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
