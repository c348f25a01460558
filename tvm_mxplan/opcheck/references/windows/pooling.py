"""Max and average pooling."""

from __future__ import annotations

from math import prod

import numpy as np

from tvm_mxplan.core.program import program as ir

from ...estimate import Array, Estimate, gamma
from ..operands import Operands
from . import pad_for, taps


def pooling(attrs: ir.Pooling, operands: Operands) -> Estimate:
    if attrs.algorithm == "max":
        return Estimate(_over_windows(attrs, operands, operands.src, np.maximum, -np.inf))
    terms = prod(attrs.kernel)
    count: Array | int = terms
    if attrs.algorithm == "avg_exclude_padding":
        count = _over_windows(attrs, operands, np.ones_like(operands.src), np.add, 0.0)
    value = _over_windows(attrs, operands, operands.src, np.add, 0.0) / count
    size = _over_windows(attrs, operands, np.abs(operands.src), np.add, 0.0) / count
    return Estimate(value, gamma(terms + 1) * size)


def _over_windows(
    attrs: ir.Pooling, operands: Operands, src: Array, combine: np.ufunc, padding: float
) -> Array:
    out = operands.shape[2:]
    padded = pad_for(src, out, attrs.kernel, attrs.strides, attrs.dilation, attrs.padding, padding)
    result: Array | None = None
    for _, seen in taps(padded, out, attrs.kernel, attrs.strides, attrs.dilation):
        result = seen.copy() if result is None else combine(result, seen, out=result)
    assert result is not None
    return result
