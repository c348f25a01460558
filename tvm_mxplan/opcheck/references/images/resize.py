"""Resized images: a matrix of weights for each axis, from exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tvm_mxplan.core.program import program as ir

from ...estimate import UNIT_ROUNDOFF, Array, Estimate
from ..operands import Operands

_HALF = Fraction(1, 2)

_PLACES: dict[str, Callable[[int, int, int], Fraction]] = {
    "half_pixel": lambda at, size, count: (at + _HALF) * Fraction(size, count) - _HALF,
    "pytorch_half_pixel": lambda at, size, count: (
        (at + _HALF) * Fraction(size, count) - _HALF if count > 1 else Fraction(0)
    ),
    "align_corners": lambda at, size, count: Fraction(at * (size - 1), max(1, count - 1)),
    "asymmetric": lambda at, size, count: Fraction(at * size, count),
    "tf_half_pixel_for_nn": lambda at, size, count: (at + _HALF) * Fraction(size, count),
}
_ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda place: math.ceil(place - _HALF),
    "round_prefer_ceil": lambda place: math.floor(place + _HALF),
    "round_prefer_even": round,
}


def resize(attrs: ir.Resize, operands: Operands) -> Estimate:
    value, size, terms = operands.src, np.abs(operands.src), 0
    for axis in range(2, value.ndim):
        weights = _weights(attrs, value.shape[axis], operands.shape[axis])
        if attrs.algorithm == "nearest":
            value = value.take(weights.argmax(1), axis)
            continue
        value = _along(weights, value, axis)
        size = _along(np.abs(weights), size, axis)
        terms += 8
    return Estimate(value, terms * UNIT_ROUNDOFF * size if terms else 0.0)


def _along(weights: Array, value: Array, axis: int) -> Array:
    """``value`` with sums of its points along one axis, by a row of weights for each; nothing times zero."""
    moved = np.moveaxis(value, axis, -1)
    rows = [moved[..., row != 0] @ row[row != 0] for row in weights]
    return np.moveaxis(np.stack(rows, -1), -1, axis)


def _weights(attrs: ir.Resize, size: int, count: int) -> Array:
    weights = np.zeros((count, size))
    for at in range(count):
        place = _PLACES[attrs.coordinates](at, size, count)
        low = math.floor(place)
        t = float(place - low)
        match attrs.algorithm:
            case "nearest":
                points = {_ROUNDINGS[attrs.rounding](place): 1.0}
            case "linear":
                points = {low: 1 - t, low + 1: t}
            case _:
                points = dict(enumerate(_spline(t, attrs.alpha), low - 1))
        if attrs.inside_only and attrs.algorithm == "cubic":
            inside = {point: weight for point, weight in points.items() if 0 <= point < size}
            points = {point: weight / sum(inside.values()) for point, weight in inside.items()}
        for point, weight in points.items():
            weights[at, min(max(point, 0), size - 1)] += weight
    return weights


def _spline(t: float, alpha: float) -> list[float]:
    """Keys's cubic: weights of the points at -1, 0, 1 and 2 for one at ``t``."""

    def near(x: float) -> float:
        return (alpha + 2) * x**3 - (alpha + 3) * x**2 + 1

    def far(x: float) -> float:
        return alpha * (x**3 - 5 * x**2 + 8 * x - 4)

    return [far(1 + t), near(t), near(1 - t), far(2 - t)]
