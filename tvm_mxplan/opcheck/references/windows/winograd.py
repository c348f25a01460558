"""Bounds the rounding of a Winograd convolution, relative to that of the direct sum.

A tile is Y = A' ((G g) * (B' d)); rounding scales with |A'| (|G| |g| * |B'| |d|), in which the numbers of one
patch reach all of its tile (Barabasz, Anderson, Soodhalter and Gregg, Error Analysis and Improving the
Accuracy of Winograd Convolution for Deep Neural Networks, ACM TOMS 46(4), 2020).  The bound here is the
largest sum of absolute values in reach, times that amplification for filters and patches of ones.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter

from ...estimate import Array

# Interpolation points beside infinity, by algorithm and filters; as in the runtime's winograd/weights.cc.
_FOUR, _SIX = (0.0, 1.0, -1.0), (0.0, 0.625, -0.625, 1.5, -1.5)
_POINTS = {("winograd_f2", 3): _FOUR, ("winograd_f4", 3): _SIX, ("winograd_f2", 5): _SIX}


def reach(algorithm: str, taps: int, size: Array) -> Array:
    """``size``, sums of absolute values [N, C, H, W], as far as they reach in a tile, amplified.

    Parameters
    ----------
    taps : extent of the filters, which are square.
    """
    points = _POINTS[algorithm, taps]
    tile = len(points) + 2 - taps
    window = 2 * tile - 1
    return amplification(points, taps) ** 2 * maximum_filter(size, size=(1, 1, window, window))


def flushed(algorithm: str, weights: Array) -> float:
    """Returns how far results may be off as subnormal numbers are taken for zeros, on the way too."""
    taps = weights.shape[-1]
    sums = np.abs(weights.astype(np.float64)).reshape(-1, *weights.shape[-3:]).sum((1, 2, 3))
    amplified = amplification(_POINTS[algorithm, taps], taps) ** 2 * float(sums.max(initial=0.0))
    return float(np.finfo(np.float32).tiny) * (1 + amplified)


def amplification(points: tuple[float, ...], taps: int) -> float:
    """Of one dimension: the largest row of |A'| (|G| 1 * |B'| 1)."""
    tile = len(points) + 2 - taps
    grown = []
    for at, point in enumerate(points):
        others = np.delete(points, at)
        filters = sum(abs(point) ** tap for tap in range(taps)) / abs(np.prod(point - others))
        grown.append(filters * np.abs(np.poly(others)).sum())
    powers = np.abs(np.array(points)) ** np.arange(tile)[:, None]
    rows = powers @ np.array(grown)
    rows[-1] += np.abs(np.poly(points)).sum()  # infinity
    return float(rows.max())
