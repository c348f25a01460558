"""Images read at the points of a grid: neighbours and weights axis by axis, in float64."""

from __future__ import annotations

import itertools

import numpy as np

from tvm_mxplan.core.program import program as ir

from ...estimate import UNIT_ROUNDOFF, Array, Estimate
from ..operands import Operands

_ALPHA = -0.75
_FAR = 1e9
_TERMS = {"nearest": 1, "linear": 2, "cubic": 4}


def grid_sample(attrs: ir.GridSample, operands: Operands) -> Estimate:
    src, grid = operands.src, operands["grid"]
    rank = src.ndim - 2
    axes = [_neighbours(attrs, grid[:, rank - 1 - axis], src.shape[2 + axis]) for axis in range(rank)]
    value, size = np.zeros(operands.shape), np.zeros(operands.shape)
    for terms in itertools.product(range(_TERMS[attrs.algorithm]), repeat=rank):
        weight: Array = np.ones(grid[:, 0].shape)
        inside = np.ones(weight.shape, bool)
        places = []
        for (index, weights), extent, term in zip(axes, src.shape[2:], terms, strict=True):
            weight = weight * weights[term]
            inside &= (index[term] >= 0) & (index[term] < extent)
            places.append(np.clip(index[term], 0, extent - 1).astype(np.int64))
        read = np.stack([one[(slice(None), *place)] for one, *place in zip(src, *places, strict=True)])
        counted = np.where(inside[:, None], read, 0.0)
        value += np.where(inside[:, None], counted * weight[:, None], 0.0)
        size += np.abs(counted * weight[:, None])
    if attrs.algorithm == "nearest":
        return Estimate(value, 0.0)
    # Each weight is rounded, so is each product of them, and what a sum of all the terms loses.
    return Estimate(value, (2 * rank + 2 + _TERMS[attrs.algorithm] ** rank) * UNIT_ROUNDOFF * size)


def _neighbours(attrs: ir.GridSample, at: Array, extent: int) -> tuple[list[Array], list[Array]]:
    """The indices of each term along one axis, which may lie outside, and its weights."""
    length = extent - 1.0 if attrs.align_corners else float(extent)
    given = np.clip(np.where(np.isnan(at), -1.0, at), -_FAR, _FAR)
    place = (given + 1.0) * (0.5 * length) - (0.0 if attrs.align_corners else 0.5)
    if attrs.algorithm == "cubic":
        low = np.floor(place)
        t = place - low
        index = [_moved(attrs, low + k, extent) for k in (-1.0, 0.0, 1.0, 2.0)]
        return index, [_far(1.0 + t), _near(t), _near(1.0 - t), _far(2.0 - t)]
    place = _moved(attrs, place, extent)
    if attrs.algorithm == "nearest":
        return [np.rint(place)], [np.ones_like(place)]
    low = np.floor(place)
    return [low, low + 1.0], [1.0 - (place - low), place - low]


def _moved(attrs: ir.GridSample, place: Array, extent: int) -> Array:
    """A place outside of the image where padding has it; zeros leave it outside."""
    if attrs.padding_mode == "zeros":
        return place
    if attrs.padding_mode == "reflection":
        begin, length = (0.0, extent - 1.0) if attrs.align_corners else (-0.5, float(extent))
        if length == 0.0:
            return np.zeros_like(place)
        away = np.abs(place - begin)
        times = np.floor(away / length)
        rest = away - times * length
        place = np.where(times % 2 == 1, length - rest, rest) + begin
    return np.clip(place, 0.0, extent - 1.0)


def _near(x: Array) -> Array:
    return ((_ALPHA + 2.0) * x - (_ALPHA + 3.0)) * x * x + 1.0


def _far(x: Array) -> Array:
    return ((_ALPHA * x - 5.0 * _ALPHA) * x + 8.0 * _ALPHA) * x - 4.0 * _ALPHA
