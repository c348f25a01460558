"""Measured rates in steps of about 10 %, so that two measurements of one machine give equal plans.

The steps are the preferred numbers of the series E24: 24 to a power of ten, of two significant digits.
"""

from __future__ import annotations

import bisect
import itertools
import math

_SERIES = (
    *(1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0),
    *(3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5, 8.2, 9.1, 10.0),
)
_LIMITS = tuple(math.sqrt(low * high) for low, high in itertools.pairwise(_SERIES))
"""Between neighbours in the series, halfway in ratio."""


def preferred(value: float) -> float:
    """The number of the series that is nearest to ``value``, which is above 0."""
    exponent = math.floor(math.log10(value))
    nearest = _SERIES[bisect.bisect_left(_LIMITS, value / 10.0**exponent)]
    return float(f"{nearest:.1f}e{exponent}")
