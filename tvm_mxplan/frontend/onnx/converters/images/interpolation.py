"""Formulas of interpolation along one axis, on arrays of numpy and on expressions of TVM alike.

``coordinate_of`` says where in the operand an element of the result lies, by one of the rules
``COORDINATES``; ``taps_of`` says which elements around there make it, and with which weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from ...dimensions.dims import Dim

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
METHODS = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Axis:
    """An axis that is resized.

    Attributes
    ----------
    size, result : elements before and after.
    scale : the scale where it is not ``result / size``; a number, or an expression inside of a kernel.
    scale_at : the tensor that holds the scale, and where, if the model computes it.
    region : the part that is resized, from 0 to 1.
    region_at : the tensor that holds it, and where it starts and ends.
    """

    size: Dim
    result: Dim
    scale: Any = None
    scale_at: tuple[relax.Expr, int] | None = None
    region: tuple[Any, Any] = (0.0, 1.0)
    region_at: tuple[relax.Expr, int, int] | None = None
    axis: int = 0

    @property
    def is_known(self) -> bool:
        """Whether all about it is known while importing."""
        numbers = isinstance(self.size, int) and isinstance(self.result, int)
        return numbers and self.scale_at is None and self.region_at is None


@dataclass(frozen=True)
class Rule:
    """The rule by which elements are found and summed; the names are ONNX's.

    The rounding is also ``ceil_where_smaller``: up where an axis shrinks and down where it grows, as version
    10 of Resize has it.
    """

    method: str
    coordinates: str
    rounding: str
    cubic_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


Taps = list[tuple[Any, Any]]
"""Position and weight of each element that is summed; positions may lie outside, where the edge counts."""


def taps_of(coordinate: Any, axis: Axis, rule: Rule, ops: Any) -> Taps:
    """The elements around a coordinate that make one of the result, and their weights.

    Parameters
    ----------
    coordinate : what ``coordinate_of`` gives.
    ops : where ``floor``, ``where`` and the like come from: numpy, or a class with its names.
    """
    if rule.method == "nearest":
        return [(_rounded(coordinate, axis, rule.rounding, ops), 1.0)]
    below = ops.floor(coordinate)
    ratio = coordinate - below
    stretch = max(1.0, 1.0 / _number(axis)) if rule.antialias else 1.0
    reach = 1 if rule.method == "linear" else 2
    first = int(np.floor(-reach * stretch)) + 1
    positions = list(range(first, 2 - first))
    weigh = _linear if rule.method == "linear" else lambda x, ops: _cubic(x, rule.cubic_a, ops)
    weights = [weigh((position - ratio) / stretch, ops) for position in positions]
    places = [below + position for position in positions]
    if rule.exclude_outside:
        size = ops.float64(axis.size)
        weights = [
            ops.where(
                ops.logical_and(ops.less_equal(0.0, place), ops.less(place, size)), weight, ops.float64(0.0)
            )
            for place, weight in zip(places, weights, strict=True)
        ]
    if rule.exclude_outside or rule.antialias:
        total = sum(weights[1:], weights[0])
        weights = [weight / total for weight in weights]
    return list(zip(places, weights, strict=True))


def inside(coordinate: Any, axis: Axis, ops: Any) -> Any:
    """Whether a coordinate lies inside the operand."""
    return ops.logical_and(
        ops.less_equal(0.0, coordinate), ops.less_equal(coordinate, ops.float64(axis.size) - 1.0)
    )


def coordinate_of(at: Any, axis: Axis, rule: Rule, ops: Any) -> Any:
    """The coordinate in the operand of the result's element ``at``, in float64."""
    size, result = ops.float64(axis.size), ops.float64(axis.result)
    length = result if axis.scale is None else size * axis.scale  # what ONNX calls output_width
    half = (at + 0.5) * size / length - 0.5
    zero = at * 0.0
    match rule.coordinates:
        case "asymmetric":
            return at * size / length
        case "align_corners":
            one = ops.less_equal(length, 1.0)
            return ops.where(one, zero, at * (size - 1.0) / ops.where(one, ops.float64(1.0), length - 1.0))
        case "pytorch_half_pixel":
            return ops.where(ops.less_equal(result, 1.0), zero, half)
        case "half_pixel_symmetric":
            return size * (at + 0.5 + (length - result) / 2.0) / length - 0.5
        case "tf_half_pixel_for_nn":
            return half + 0.5
        case "tf_crop_and_resize":
            # in float32, as the region is, whose ends decide which element is the nearest
            start, end, last, place, count = map(ops.float32, (*axis.region, size - 1.0, at, result - 1.0))
            one = ops.less_equal(result, 1.0)
            steps = ops.where(one, ops.float32(1.0), count)
            middle = zero + ops.float64(ops.float32(0.5) * (start + end) * last)
            return ops.where(one, middle, ops.float64(start * last + place * (end - start) * last / steps))
        case _:
            return half


def _rounded(coordinate: Any, axis: Axis, rounding: str, ops: Any) -> Any:
    match rounding:
        case "ceil_where_smaller":
            scale = ops.float64(axis.result) / ops.float64(axis.size) if axis.scale is None else axis.scale
            return ops.where(ops.less(scale, 1.0), ops.ceil(coordinate), ops.floor(coordinate))
        case "floor":
            return ops.floor(coordinate)
        case "ceil":
            return ops.ceil(coordinate)
        case "round_prefer_ceil":
            return ops.floor(coordinate + 0.5)
        case _:
            return ops.ceil(coordinate - 0.5)


def _linear(distance: Any, ops: Any) -> Any:
    away = _absolute(distance, ops)
    return ops.where(ops.less(away, 1.0), 1.0 - away, away * 0.0)


def _cubic(distance: Any, a: float, ops: Any) -> Any:
    x = _absolute(distance, ops)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    return ops.where(ops.less_equal(x, 1.0), near, ops.where(ops.less(x, 2.0), far, x * 0.0))


def _absolute(value: Any, ops: Any) -> Any:
    return ops.where(ops.less(value, 0.0), 0.0 - value, value)


def _number(axis: Axis) -> float:
    """The scale of an axis that is known."""
    return float(axis.scale) if axis.scale is not None else int(axis.result) / int(axis.size)
