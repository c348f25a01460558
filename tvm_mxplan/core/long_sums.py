"""Long sums in stages, so that rounding errors stay small: sums of sums, each of a bounded number of terms.

Before   sum over the last axis of [8, 1000000]
After    sums over the last axis of [8, 1000, 1000], then over that of [8, 1000]

A sum of n terms, one after the other, errs by up to n units of roundoff, and by about a sixth of that where
the terms are alike; in stages of n1, n2, ... terms by up to n1 + n2 + ... of them.
"""

from __future__ import annotations

import math

_UNIT_ROUNDOFF = 2.0**-24
_TOLERATED = 2.0**-14  # relative error of one stage, at worst


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
