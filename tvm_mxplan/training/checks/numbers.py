"""Numbers that users state; numpy's count as Python's."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import SupportsFloat, TypeGuard

import numpy as np

from ...errors import InvalidInputError

_INT64 = np.iinfo("int64")


def float_of(name: str, value: object, low: float, high: float = math.inf) -> float:
    """A number from ``low`` to below ``high`` as Python's; InvalidInputError for another value."""
    if not is_number(value, low, high):
        bounds = f"of at least {low}" if high == math.inf else f"from {low} to below {high}"
        raise InvalidInputError(f"{name}={value!r}; expected a number {bounds}")
    return float(value)


def is_number(value: object, low: float, high: float = math.inf) -> TypeGuard[SupportsFloat]:
    """Whether a value is a number from ``low`` to below ``high``."""
    return isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) < high


def int_of(name: str, value: object, low: int = int(_INT64.min)) -> int:
    """A whole number from ``low`` on that fits int64 as Python's; InvalidInputError for another value."""
    if isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) <= _INT64.max:
        return int(value)
    bounds = "of int64" if low == _INT64.min else f"from {low}"
    raise InvalidInputError(f"{name}={value!r}; expected a whole number {bounds}")


def whole_numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Whole numbers of any type as int64.

    Raises
    ------
    InvalidInputError : one that int64 does not hold, which would become another one.
    """
    if array.dtype == "uint64" and (array > np.uint64(_INT64.max)).any():
        at = tuple(int(n) for n in np.argwhere(array > np.uint64(_INT64.max))[0])
        raise InvalidInputError(f"{name}{list(at)} is {int(array[at])}; expected numbers of int64")
    return array.astype("int64")
