"""Attention: two products around a softmax."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate, gamma, unit_roundoff
from .operands import Operands

_FLOAT_BYTES = 4
_EXP = 4e-6
"""Relative error of an exponential, as for a softmax alone."""


def attention(attrs: ir.Attention, operands: Operands) -> Estimate:
    """The whole result."""
    return of_rows(attrs, operands, np.arange(operands.src.shape[2]), operands.src.shape[2])


def of_rows(attrs: ir.Attention, operands: Operands, places: Array, rows: int) -> Estimate:
    """The result of some queries, whose ``places`` among all ``rows`` are given.

    Errors of scores become those of weights, relative to each; sums over keys add their own.  Where the
    result is shorter than float32, weights are rounded to its type before they are multiplied.
    """
    query, (key, value) = operands.src, (_of_heads(operands, role) for role in ("key", "value"))
    turned, depth = key.swapaxes(2, 3), query.shape[3]
    scores = attrs.scale * np.matmul(query, turned)
    sizes = abs(attrs.scale) * np.matmul(np.abs(query), np.abs(turned))
    error = gamma(depth + 2) * sizes
    mask = operands.get("mask")
    if mask is not None:
        scores = scores + mask
        error = error + UNIT_ROUNDOFF * np.abs(scores)
    scores = np.where(_seen(attrs, places, rows, scores.shape[3]), scores, -np.inf)
    below = scores - scores.max(3, keepdims=True)
    weights = np.exp(below)
    weights = weights / weights.sum(3, keepdims=True)
    # Nothing is left of what is far below, whatever its error.
    relative = np.where(weights > 0, error + UNIT_ROUNDOFF * np.abs(below), 0.0) + _EXP
    relative = relative + (weights * relative).sum(3, keepdims=True) + gamma(key.shape[2] + 4)
    if operands.dtype.itemsize < _FLOAT_BYTES:
        relative = relative + unit_roundoff(operands.dtype)
    if attrs.nan_is_zero:
        weights = np.where(np.isnan(weights), 0.0, weights)
    tiny = np.finfo(np.float32).tiny
    result = np.matmul(weights, value)
    off = np.matmul(weights * (relative + gamma(key.shape[2])) + tiny, np.abs(value))
    return Estimate(result.swapaxes(1, 2), off.swapaxes(1, 2))


def _of_heads(operands: Operands, role: str) -> Array:
    """Keys or values, those of a head for each head of queries."""
    shared = operands[role]
    return shared.repeat(operands.src.shape[1] // shared.shape[1], 1)


def _seen(attrs: ir.Attention, places: Array, rows: int, columns: int) -> Array:
    if attrs.causal == "no":
        return np.ones((len(places), columns), bool)
    before = columns - rows if attrs.causal == "last" else 0
    return np.arange(columns) <= places[:, None] + before
