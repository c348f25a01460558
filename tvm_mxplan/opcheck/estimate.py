"""Estimates a step's result, and the distance to which rounding may take a right implementation from it.

A reference works in float64 and carries an error for every element.  Sums and products are bounded by

    |computed - exact| <= gamma(n) * sum |x_i * y_i|,   gamma(n) = min(n, 10 * sqrt(n)) * u

with n the number of terms and u the unit roundoff of the type that accumulates.  n * u holds for every
order of summation (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1);
lambda * sqrt(n) * u holds with a probability of at least 1 - 2 n exp(-lambda^2 / 2) for each element
(Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41, 2019),
which for lambda = 10 leaves one false alarm in more than 10^17 elements of a million terms each.
A result in a shorter type than float32 is rounded once more, by that type's u.
Approximated functions (exp, tanh, ...) add what the library's own tests allow them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

UNIT_ROUNDOFF = 2.0**-24  # float32, in which every step accumulates
_LAMBDA = 10.0


def gamma(terms: int) -> float:
    """Relative error of a sum of ``terms`` products against the sum of their absolute values."""
    return min(terms, _LAMBDA * sqrt(terms)) * UNIT_ROUNDOFF


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Relative error of rounding to an element type; 0 for integers, which are not rounded to."""
    if dtype.name == "bfloat16":  # which numpy knows nothing of
        return 2.0**-8
    return float(np.finfo(dtype).eps) / 2 if np.issubdtype(dtype, np.floating) else 0.0


def as_stored(values: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as an element type holds them: the nearest integers, where it is of integers."""
    if dtype.kind not in "iu":
        return values.astype(dtype)
    with np.errstate(invalid="ignore"):  # NaN, which is no integer
        return np.rint(values).astype(dtype)


@dataclass(frozen=True)
class Estimate:
    """Exact values, and an absolute error for each; 0 where a step only moves or selects numbers."""

    value: Array
    error: Array | float = 0.0

    def rounded(self, roundings: float = 1.0) -> Estimate:
        """The same after ``roundings`` more roundings of the value."""
        return Estimate(self.value, self.error + roundings * UNIT_ROUNDOFF * np.abs(self.value))


def rounded_to(dtype: np.dtype[Any], estimate: Estimate) -> Estimate:
    """``estimate`` once it has been stored in a type; what accumulates, float32, rounds no further."""
    unit = unit_roundoff(dtype)
    if unit <= UNIT_ROUNDOFF:
        return estimate
    return Estimate(estimate.value, estimate.error + unit * np.abs(estimate.value))
