"""Integers that stand for real numbers, scale * (integer - zero point), before and behind a step.

What a step computes with is real again: its reference is that for real numbers.  A result of integers is
divided by its scale and moved by its zero point; it is rounded where results are compared, since a number
half way between two integers may become either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate
from .operands import Operands

Given = Mapping[str, Sequence[Array]]
_ROUNDINGS = 4
"""Of a scaled number on its way into an integer."""
_STEPS = 255.0
"""The largest integer of 8 bits."""


def quantization(_attrs: ir.Quantization, operands: Operands) -> Estimate:
    """The real numbers, which ``stored`` makes integers of."""
    return Estimate(operands.src).rounded(2)


def dynamic_quantization(_attrs: ir.DynamicQuantization, operands: Operands) -> dict[str, Estimate]:
    """Integers, their scale and zero point; what is nearly half way to another zero point may be that."""
    src = operands.src
    least, largest = min(0.0, float(src.min())), max(0.0, float(src.max()))
    scale = np.array([(largest - least) / _STEPS or 1.0])
    off = _ROUNDINGS * UNIT_ROUNDOFF
    below = -least / scale
    zero = np.rint(below)
    near = np.abs(np.abs(below - zero) - 0.5) <= off * (np.abs(below) + 1.0)
    steps = src / scale
    error = off * (np.abs(steps) + np.abs(zero)) + near
    return {
        "dst": Estimate(np.clip(steps + zero, 0.0, _STEPS), error),
        "made_scale": Estimate(scale, off * scale),
        "made_zero_point": Estimate(zero, near.astype(np.float64)),
    }


def real(step: ir.Step, given: Given) -> dict[str, Sequence[Array]]:
    """A step's operands by role, real numbers in the place of integers."""
    found = {role: arrays for role, arrays in given.items() if role not in ir.SCALE_ROLES}
    if "src_scale" in given:
        (src,) = given["src"]
        along = step.attrs.axis if isinstance(step.attrs, ir.Quantization) else 0
        zero = given["src_zero_point"][0] if "src_zero_point" in given else np.zeros(1, src.dtype)
        found["src"] = [
            (src - _along(zero, src.ndim, along)) * _along(given["src_scale"][0], src.ndim, along)
        ]
    if "weights_scale" in given:
        (weights,), (scale,) = given["weights"], given["weights_scale"]
        found["weights"] = [weights * _for_outputs(step.attrs, scale, weights.shape)]
    return found


def stored(step: ir.Step, given: Given, estimate: Estimate, dtype: np.dtype[Any]) -> Estimate:
    """A result in units of the integers that it becomes, between the least and the largest of them."""
    if "dst_scale" not in given:
        return estimate
    along = step.attrs.axis if isinstance(step.attrs, ir.Quantization) else 0
    rank = estimate.value.ndim
    scale = _along(given["dst_scale"][0], rank, along)
    zero = _along(given["dst_zero_point"][0], rank, along) if "dst_zero_point" in given else 0.0
    with np.errstate(all="ignore"):
        steps = estimate.value / scale
        error = estimate.error / scale + _ROUNDINGS * UNIT_ROUNDOFF * (np.abs(steps) + np.abs(zero))
    limits = np.iinfo(dtype)
    return Estimate(np.clip(steps + zero, limits.min, limits.max), error)


def _along(row: Array, rank: int, axis: int) -> Array:
    return row.reshape([-1 if at == axis else 1 for at in range(rank)]) if row.size > 1 else row.reshape(())


def _for_outputs(attrs: ir.Attributes, scale: Array, shape: tuple[int, ...]) -> Array:
    """Scales of a product's weights so that they broadcast along its outputs."""
    if scale.size == 1:
        return scale.reshape(())
    if isinstance(attrs, ir.MatMul):
        return scale
    lead = 2 if isinstance(attrs, ir.Convolution | ir.Deconvolution) and attrs.groups > 1 else 1
    return scale.reshape(*shape[:lead], *(1,) * (len(shape) - lead))
