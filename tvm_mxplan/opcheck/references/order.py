"""Steps that say where elements stand in an order."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import Array, Estimate
from .operands import Operands


def extreme_index(attrs: ir.ExtremeIndex, operands: Operands) -> Estimate:
    src = np.flip(operands.src, attrs.axis) if attrs.last else operands.src
    find = np.argmax if attrs.algorithm == "max" else np.argmin
    places = np.expand_dims(find(src, attrs.axis), attrs.axis)
    return Estimate((src.shape[attrs.axis] - 1 - places if attrs.last else places).astype(np.float64))


def ranking(attrs: ir.Ranking, operands: Operands) -> dict[str, Estimate]:
    order = _sorted(operands.src, attrs).take(np.arange(operands.shape[attrs.axis]), attrs.axis)
    values = np.take_along_axis(operands.src, order, attrs.axis)
    return {"dst": Estimate(values), "order": Estimate(order.astype(np.float64))}


def _sorted(src: Array, attrs: ir.Ranking) -> Array:
    """Places of all elements in their order; sorting puts what is no number at the end."""
    if not attrs.largest:
        return np.argsort(src, attrs.axis, kind="stable")
    # Backwards, the largest come last, and of equal ones the first.
    backwards = np.argsort(np.flip(src, attrs.axis), attrs.axis, kind="stable")
    return src.shape[attrs.axis] - 1 - np.flip(backwards, attrs.axis)
