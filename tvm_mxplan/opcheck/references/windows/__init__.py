"""Windows over spatial axes, one tap (a position inside the window) at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...estimate import Array


def reach(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Extents of a window with its gaps."""
    return [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]


def pad_for(
    src: Array,
    out: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    begin: Sequence[int],
    value: float,
) -> Array:
    """``src`` with ``value`` around: ``begin`` in front, behind what ``out`` windows need."""
    pairs = [(0, 0), (0, 0)]
    for size, count, span, stride, front in zip(
        src.shape[2:], out, reach(kernel, dilation), strides, begin, strict=True
    ):
        pairs.append((front, max(0, (count - 1) * stride + span - size - front)))
    return np.pad(src, pairs, constant_values=value)


def taps(
    padded: Array,
    out: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each position in the window, and what all windows see there: [N, C, *out]."""
    for tap in np.ndindex(*kernel):
        window = tuple(
            slice(at * d, at * d + (count - 1) * s + 1, s)
            for at, d, count, s in zip(tap, dilation, out, strides, strict=True)
        )
        yield tap, padded[(slice(None), slice(None), *window)]
