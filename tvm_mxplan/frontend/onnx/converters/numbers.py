"""Numbers of any element type, and the ends of types as ONNX's operators take them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from tvm import relax


def constant(value: object, dtype: str) -> relax.Expr:
    """A constant of that type, of whatever type the value is."""
    return relax.const(np.asarray(value).astype(dtype), dtype)


def is_integer(dtype: str) -> bool:
    """Whether numbers of the type are whole."""
    return np.dtype(dtype).kind in "iu"


def least(dtype: str) -> float | int:
    """The smallest number: minus infinity where there is one."""
    return int(np.iinfo(dtype).min) if is_integer(dtype) else float("-inf")


def most(dtype: str) -> float | int:
    """The largest number: infinity where there is one."""
    return int(np.iinfo(dtype).max) if is_integer(dtype) else float("inf")


def ends(dtype: str) -> tuple[float, float]:
    """The smallest and the largest finite number of any type that numpy or ml_dtypes has."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(dtype)
    else:
        try:
            info = ml_dtypes.iinfo(kind)
        except ValueError:
            info = ml_dtypes.finfo(kind)
    return float(info.min), float(info.max)
