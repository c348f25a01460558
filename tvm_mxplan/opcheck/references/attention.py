"""Attention, two products around a softmax, and the rotary places in front of it."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate, gamma, unit_roundoff
from .operands import Operands

_FLOAT_BYTES = 4
_EXP = 4e-6
"""Relative error of an exponential, as for a softmax alone."""


def attention(attrs: ir.Attention, operands: Operands) -> dict[str, Estimate]:
    """The whole result, and keys and values behind past ones."""
    rows = operands.src.shape[2]
    found = {"dst": of_rows(attrs, operands, np.arange(rows), rows)}
    if operands.get("past_key") is not None:
        found |= {f"joined_{role}": Estimate(joined(operands, role)) for role in ("key", "value")}
    return found


def joined(operands: Operands, role: str) -> Array:
    """Keys or values behind past ones, in caches in their place."""
    past, fresh = operands[f"past_{role}"], operands[role]
    count = past.shape[2] if (filled := operands.get("filled")) is None else int(filled[0])
    return np.concatenate([past[:, :, :count], fresh, past[:, :, count + fresh.shape[2] :]], 2)


def _every_one(operands: Operands, role: str) -> Array:
    """All keys, or all values, that count, the past ones first."""
    if operands.get(f"past_{role}") is None:
        return operands[role]
    whole, filled = joined(operands, role), operands.get("filled")
    return whole if filled is None else whole[:, :, : int(filled[0]) + operands[role].shape[2]]


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
        scores = scores + (mask if mask.shape[3] == 1 else mask[..., : scores.shape[3]])
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
    shared = _every_one(operands, role)
    return shared.repeat(operands.src.shape[1] // shared.shape[1], 1)


def _seen(attrs: ir.Attention, places: Array, rows: int, columns: int) -> Array:
    if attrs.causal == "no":
        return np.ones((len(places), columns), bool)
    before = columns - rows if attrs.causal == "last" else 0
    return np.arange(columns) <= places[:, None] + before


def rotary(attrs: ir.Rotary, operands: Operands) -> Estimate:
    src, width = operands.src, attrs.width
    value, error = src.copy(), np.zeros_like(src)
    first, second = _pairs(attrs)
    cosines, sines = operands["cosines"], operands["sines"]
    whole = cosines.shape[-1] == width
    of_first, of_second = (first, second) if whole else (slice(0, width // 2),) * 2
    a, b = src[..., first], src[..., second]
    for place, of, one, other, sign in ((first, of_first, a, b, -1.0), (second, of_second, b, a, 1.0)):
        straight, across = one * cosines[..., of], sign * other * sines[..., of]
        value[..., place] = straight + across
        error[..., place] = gamma(2) * (np.abs(straight) + np.abs(across))
    return Estimate(value, error)


def _pairs(attrs: ir.Rotary) -> tuple[slice, slice]:
    """Places of the first and of the second numbers of pairs."""
    half, width = attrs.width // 2, attrs.width
    if attrs.interleaved:
        return slice(0, width, 2), slice(1, width, 2)
    return slice(0, half), slice(half, width)
