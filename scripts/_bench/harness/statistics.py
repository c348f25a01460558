"""Statistics that the harness computes from latencies. Plain numbers in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median with the tenth and the ninetieth percentile."""

    median: float
    p10: float
    p90: float

    def scaled(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.p10 * factor, self.p90 * factor)


def percentile(values: Sequence[float], fraction: float) -> float:
    """Linear between the closest two ranks; ``fraction`` is in [0, 1]."""
    if not values:
        raise ValueError("no percentile of nothing")
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), percentile(values, 0.1), percentile(values, 0.9))


def ratio_to_best(subject: Sequence[float], peers: Mapping[str, Sequence[float]]) -> Spread | None:
    """The spread over rounds of ``subject`` / the best peer of the same round; below one is faster.

    Engines of one round ran within seconds of each other, so a slow phase of the machine cancels. None
    without peers or rounds; every engine must have the same rounds.
    """
    if not subject or not peers:
        return None
    rounds = zip(subject, *peers.values(), strict=True)
    return spread([own / min(others) for own, *others in rounds])


def geometric_mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    if not values:
        return None
    return math.exp(sum(math.log(value) for value in values) / len(values))


def ratio_text(above: Sequence[float], below: Sequence[float], digits: int = 3) -> str:
    """Ratios of samples of the same rounds: the median (least to greatest)."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return f"{median(ratios):.{digits}f} ({min(ratios):.{digits}f}-{max(ratios):.{digits}f})"
