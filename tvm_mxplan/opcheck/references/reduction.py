"""Reductions, cumulative sums, softmax and its logarithm."""

from __future__ import annotations

from math import prod

import numpy as np
from scipy import special

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate, gamma
from .operands import Operands

_EXP = 4e-6  # relative error that oneDNN's tests allow exp and log in float32


def reduction(attrs: ir.Reduction, operands: Operands) -> Estimate:
    src = operands.src
    axes = tuple(
        axis for axis, (size, kept) in enumerate(zip(src.shape, operands.shape, strict=True)) if size != kept
    )
    terms = prod(src.shape[axis] for axis in axes)
    match attrs.algorithm:
        case "max":
            return Estimate(src.max(axes, keepdims=True))
        case "min":
            return Estimate(src.min(axes, keepdims=True))
        case "mul":
            return Estimate(src.prod(axes, keepdims=True)).rounded(terms)
        case "sum":
            size = np.abs(src).sum(axes, keepdims=True)
            return Estimate(src.sum(axes, keepdims=True), gamma(terms) * size)
        case "mean":
            size = np.abs(src).mean(axes, keepdims=True)
            return Estimate(src.mean(axes, keepdims=True), gamma(terms + 1) * size)
    raise KeyError(attrs.algorithm)


def cumulative_sum(attrs: ir.CumulativeSum, operands: Operands) -> Estimate:
    src = operands.src

    def summed(terms: Array) -> Array:
        found = np.cumsum(np.flip(terms, attrs.axis) if attrs.reverse else terms, attrs.axis)
        if attrs.exclusive:  # one place later, behind a zero
            found = np.roll(found, 1, attrs.axis)
            found[(slice(None),) * attrs.axis + (slice(0, 1),)] = 0
        return np.flip(found, attrs.axis) if attrs.reverse else found

    return Estimate(summed(src), gamma(src.shape[attrs.axis]) * summed(np.abs(src)))


def _log_softmax(src: Array, axis: int) -> Array:
    """Rows with an infinity above 0 are no numbers; SciPy has -inf for others of such a row."""
    distances = src - src.max(axis, keepdims=True)
    return distances - np.log(np.exp(distances).sum(axis, keepdims=True))


def softmax(attrs: ir.Softmax, operands: Operands) -> Estimate:
    src, axis = operands.src, attrs.axis
    below = np.abs(src - src.max(axis, keepdims=True))  # the exponents, rounded once
    sums = gamma(src.shape[axis]) + _EXP
    match attrs.algorithm:
        case "softmax":
            value = special.softmax(src, axis)
            # The exponents' errors are those of every term of the sum, weighted as the terms are.
            inside = (value * below).sum(axis, keepdims=True)
            relative = UNIT_ROUNDOFF * (below + inside + 4) + _EXP + sums
            return Estimate(value, relative * value + np.finfo(np.float32).tiny)
        case "log_softmax":
            value = _log_softmax(src, axis)
            weights = np.exp(value)
            inside = UNIT_ROUNDOFF * (weights * below).sum(axis, keepdims=True)
            log_sum = np.abs(value) + below
            return Estimate(
                value, inside + sums + _EXP * log_sum + 4 * UNIT_ROUNDOFF * (below + np.abs(value))
            )
    raise KeyError(attrs.algorithm)
