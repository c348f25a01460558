"""Steps that choose between numbers, compare them, or give them another type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import Estimate
from .operands import Operands

_COMPARISONS: dict[str, np.ufunc] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def select(_attrs: ir.Select, operands: Operands) -> Estimate:
    return Estimate(np.where(operands["condition"] != 0, operands.src, operands["src1"]))


def compare(attrs: ir.Compare, operands: Operands) -> Estimate:
    return Estimate(_COMPARISONS[attrs.algorithm](operands.src, operands["src1"]))


def cast(_attrs: ir.Cast, operands: Operands) -> Estimate:
    return Estimate(operands.src)


def cast_to(dtype: np.dtype[Any], estimate: Estimate) -> Estimate:
    """Numbers cut to integers, no number where the type has none for them; truth values."""
    value = estimate.value
    if dtype.kind == "b":
        return Estimate(np.not_equal(value, 0).astype(np.float64))
    if dtype.kind not in "iu":
        return estimate
    limits, whole = np.iinfo(dtype), np.trunc(value)
    return Estimate(np.where((whole >= limits.min) & (whole <= limits.max), whole, np.nan))
