"""Resize and Upsample by every rule, to sizes that are numbers, expressions or computed by the model.

    sizes or scales   ->  an ``Axis`` for each axis that changes
    what libraries do ->  relax.op.image.resize2d, resize3d
    all else          ->  axis after axis: a table of positions and weights, and a kernel that sums by it

Interpolation is separable, so axes are resized one after the other (``resize_kernels.py``).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from tvm import relax, tirx

from .....errors import InvalidInputError, UnsupportedError
from ...dimensions.dims import Dim, compared, divided, expression, same, simplified
from ...dimensions.ratios import resized
from ...node import Emitter, Node, NotTaken
from ...values import Symbols, Value, dtype_of, shape_of, value_of
from ..table import converts
from .interpolation import COORDINATES, METHODS, ROUNDINGS, Axis, Rule
from .resize_kernels import resized_along


@converts("Upsample")
def _upsample(emitter: Emitter, node: Node) -> Value:
    """Resize by another name: asymmetric coordinates, the pixel before."""
    scales = node.attribute("scales")
    if scales is None and node.opset < 9:  # version 1 has a height and a width
        scales = [1.0, 1.0, node.attribute("height_scale", 1.0), node.attribute("width_scale", 1.0)]
    given = np.asarray(scales, "float32") if scales is not None else node.input(1)
    method = node.text("mode", "nearest")
    method = "linear" if method == "bilinear" else method
    return _resized(emitter, node, Rule(_method(emitter, node, method), "asymmetric", "floor"), None, given)


@converts("Resize", first_opset=10)
def _resize(emitter: Emitter, node: Node) -> Value:
    method = _method(emitter, node, node.text("mode", "nearest"))
    if node.opset < 11:
        return _resized(emitter, node, Rule(method, "asymmetric", "ceil_where_smaller"), None, node.input(1))
    antialias = bool(node.attribute("antialias", 0))
    rule = Rule(
        method,
        node.text("coordinate_transformation_mode", "half_pixel"),
        node.text("nearest_mode", "round_prefer_floor"),
        cubic_a=node.attribute("cubic_coeff_a", -0.75),
        exclude_outside=bool(node.attribute("exclude_outside", 0)) and (method == "cubic" or antialias),
        antialias=antialias,
        extrapolation=node.attribute("extrapolation_value", 0.0),
    )
    if rule.coordinates not in COORDINATES or rule.rounding not in ROUNDINGS:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: coordinates {rule.coordinates!r}, rounding {rule.rounding!r}; "
            f"expected one of {', '.join(COORDINATES)} and one of {', '.join(ROUNDINGS)}"
        )
    return _resized(emitter, node, rule, _given(node.input(3)), _given(node.input(2)))


def _method(emitter: Emitter, node: Node, method: str) -> str:
    if method not in METHODS:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: mode {method!r}; expected one of {', '.join(METHODS)}"
        )
    return method


def _given(value: Value) -> Value:
    """An operand; None where it is left out, which an empty tensor says as well."""
    return None if value is None or shape_of(value) == [0] else value


def _resized(emitter: Emitter, node: Node, rule: Rule, sizes: Value, scales: Value) -> Value:
    """The first operand resized to sizes or, where there are none, by scales."""
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    stated = node.attribute("axes")
    wanted = range(len(dims)) if stated is None else [axis % len(dims) for axis in stated]
    given = sizes if sizes is not None else scales
    if given is None:
        raise InvalidInputError(f"{emitter.importer.called(node)}: expected sizes or scales, got neither")
    count = shape_of(given)
    if count is not None and count != [len(wanted)]:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: expected {len(wanted)} sizes or scales, one for each axis, "
            f"got {count[0] if count else 'a scalar'}"
        )
    extents = [dims[axis] for axis in wanted]
    if sizes is not None:
        found = _by_sizes(emitter, node, extents, sizes)
    else:
        found = _by_scales(emitter, extents, scales)
    axes = [replace(axis, axis=at) for axis, at in zip(found, wanted, strict=True)]
    if rule.coordinates == "tf_crop_and_resize":
        axes = _with_region(node, axes)
    else:
        axes = [axis for axis in axes if not _is_whole(axis)]
    if any(isinstance(axis.result, int) and axis.result < 0 for axis in axes):
        raise InvalidInputError(f"{emitter.importer.called(node)}: a size below 0; expected 0 or more")
    by_library = _image_resize(emitter, data, dims, axes, rule)
    if by_library is not None:
        return by_library
    return _along_axes(emitter, node, data, axes, rule)


def _is_whole(axis: Axis) -> bool:
    """Whether an axis stays as it is."""
    exact = axis.scale is None or (isinstance(axis.scale, float) and axis.scale == 1.0)
    return exact and same(axis.size, axis.result)


def _by_sizes(emitter: Emitter, node: Node, extents: list[Dim], sizes: Value) -> list[Axis]:
    results = emitter.dims(sizes)
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [Axis(size, result) for size, result in zip(extents, results, strict=True)]
    # One scale for all, the least or largest result / size; rounding half up keeps the order of results.
    pick = tirx.min if policy == "not_larger" else tirx.max
    axes = []
    for size in extents:
        found: Dim | None = None
        for other, result in zip(extents, results, strict=True):
            half_up = divided(simplified(2 * result * size + other), simplified(expression(2) * other))
            found = half_up if found is None else simplified(pick(expression(found), expression(half_up)))
        assert found is not None
        axes.append(Axis(size, found))
    if all(isinstance(dim, int) for dim in [*extents, *results]):
        ratios = [result / size for size, result in zip(extents, results, strict=True)]
        scale = min(ratios) if policy == "not_larger" else max(ratios)
        return [replace(axis, scale=float(scale)) for axis in axes]
    return axes


def _by_scales(emitter: Emitter, extents: list[Dim], scales: Value) -> list[Axis]:
    """Sizes are the product with a scale in float32, rounded down, as onnxruntime and onnx compute them."""
    if isinstance(scales, np.ndarray):
        numbers = scales.astype("float32")
        known = [_scaled(size, scale) for size, scale in zip(extents, numbers, strict=True)]
        left = [at for at, result in enumerate(known) if result is None]
        made: list[Dim] = []
        if left:
            made = _computed(emitter, [extents[at] for at in left], emitter.tensor(numbers[left]))
        rest = iter(made)
        results = [next(rest) if result is None else result for result in known]
        found = []
        for size, result, scale in zip(extents, results, numbers, strict=True):
            exact = _factor(scale)
            whole = exact is not None and same(simplified(result * exact.denominator), size * exact.numerator)
            found.append(Axis(size, result, scale=None if whole else float(scale)))
        return found
    if isinstance(scales, Symbols):
        pairs = list(zip(extents, scales.list(), strict=True))
        with contextlib.suppress(NotTaken):
            return [Axis(size, resized(size, scale)) for size, scale in pairs]
    tensor = emitter.tensor(scales)
    return [
        Axis(size, result, scale_at=(tensor, at))
        for at, (size, result) in enumerate(zip(extents, _computed(emitter, extents, tensor), strict=True))
    ]


def _computed(emitter: Emitter, extents: list[Dim], scales: relax.Expr) -> list[Dim]:
    """Sizes that the model computes from scales."""
    old = emitter.emit(relax.op.astype(emitter.tensor(value_of(extents, (len(extents),))), "float32"))
    new = emitter.emit(relax.op.floor(relax.op.multiply(old, relax.op.astype(scales, "float32"))))
    return emitter.dims(emitter.emit(relax.op.astype(new, "int64")))


def _scaled(size: Dim, scale: np.float32) -> Dim | None:
    """``floor(size * scale)``; None where that is no expression over named dimensions."""
    if isinstance(size, int):
        return math.floor(np.float32(size) * scale)
    exact = _factor(scale)
    # In float32, a product by a scale that is as much less than the fraction may be less than a whole number.
    if exact is None or Fraction(float(scale)) / exact - 1 <= -Fraction(1, 2**25 + 8):
        return None
    return simplified(tirx.floordiv(expression(size) * exact.numerator, exact.denominator))


def _factor(scale: np.float32) -> Fraction | None:
    """The scale as a fraction of small numbers."""
    exact = Fraction(float(scale)).limit_denominator(4096)
    return exact if exact > 0 and np.float32(exact.numerator / exact.denominator) == scale else None


def _with_region(node: Node, axes: list[Axis]) -> list[Axis]:
    """The axes with the part of each that is resized, in fractions of the axis."""
    region = node.input(1)
    if region is None:
        raise NotTaken
    if not isinstance(region, np.ndarray):
        return [replace(axis, region_at=(region, at, at + len(axes))) for at, axis in enumerate(axes)]
    region = region.reshape(2, -1)
    return [
        replace(axis, region=(float(start), float(end)))
        for axis, start, end in zip(axes, region[0], region[1], strict=True)
    ]


def _image_resize(
    emitter: Emitter, data: relax.Expr, dims: list[Dim], axes: list[Axis], rule: Rule
) -> Value | None:
    """An image or volume resized by an operator that libraries know; None where its rules are not ONNX's."""
    if len(dims) not in (4, 5) or dtype_of(data) != "float32" or not axes:
        return None
    if len(dims) == 5 and not all(isinstance(dim, int) for axis in axes for dim in (axis.size, axis.result)):
        return None
    if any(axis.axis < 2 or axis.scale is not None or axis.scale_at is not None for axis in axes):
        return None
    coordinates = _coordinates_of_operators(axes, rule, len(dims))
    if coordinates is None:
        return None
    results = {axis.axis: axis.result for axis in axes}
    size = relax.ShapeExpr([expression(results.get(at, dims[at])) for at in range(2, len(dims))])
    operator, layout = (
        (relax.op.image.resize2d, "NCHW") if len(dims) == 4 else (relax.op.image.resize3d, "NCDHW")
    )
    if rule.method == "cubic":
        return emitter.emit(
            operator(data, size, None, layout, "cubic", coordinates, cubic_alpha=rule.cubic_a)
        )
    method = "nearest_neighbor" if rule.method == "nearest" else "linear"
    rounding = "" if method == "linear" else "floor" if coordinates == "asymmetric" else "round"
    return emitter.emit(operator(data, size, None, layout, method, coordinates, rounding))


def _coordinates_of_operators(axes: list[Axis], rule: Rule, rank: int) -> str | None:
    """The coordinates by which an operator gives what the rule does; None where there are none."""
    several = all(compared("==", axis.result, 1) is False for axis in axes)
    symmetric = rule.coordinates in ("half_pixel", "half_pixel_symmetric") or (
        rule.coordinates == "pytorch_half_pixel" and several
    )
    if rule.method == "nearest":
        # With whole factors, half-pixel coordinates never fall between two pixels.
        if rule.coordinates == "asymmetric":
            regular = rule.rounding in ("floor", "ceil_where_smaller")
        else:
            regular = symmetric and rule.rounding.startswith("round")
        if not regular or not all(map(_is_multiple, axes)):
            return None
        return "asymmetric" if rule.coordinates == "asymmetric" else "half_pixel"
    known = all(isinstance(dim, int) for axis in axes for dim in (axis.size, axis.result))
    if rule.antialias or rule.exclude_outside or (rule.method == "cubic" and not (rank == 4 and known)):
        return None
    if symmetric:
        return "half_pixel"
    if rule.coordinates == "align_corners":  # the operators divide by one less than the result
        return "align_corners" if several and rank == 4 and known else None
    return "asymmetric" if rule.coordinates == "asymmetric" and rule.method == "linear" else None


def _is_multiple(axis: Axis) -> bool:
    factor = simplified(divided(axis.result, axis.size))
    return isinstance(factor, int) and factor >= 1 and same(axis.result, factor * axis.size)


def _along_axes(emitter: Emitter, node: Node, data: relax.Expr, axes: list[Axis], rule: Rule) -> Value:
    dtype = dtype_of(data)
    wide = data
    inner = dtype if dtype == "float64" or rule.method == "nearest" else "float32"
    if inner != dtype:
        wide = emitter.emit(relax.op.astype(data, inner))
    for axis in sorted(axes, key=_growth):
        if isinstance(axis.size, int) and axis.size == 0 and axis.result != 0:
            raise InvalidInputError(
                f"{emitter.importer.called(node)}: axis {axis.axis} is empty; expected elements to resize"
            )
        if rule.antialias and not axis.is_known:
            raise UnsupportedError(
                f"{emitter.importer.called(node)}: antialias with a scale that is not known when compiling; "
                "state the sizes as numbers"
            )
        wide = resized_along(emitter.builder, wide, axis, rule)
    if inner == dtype:
        return wide
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        wide = emitter.emit(relax.op.clip(relax.op.trunc(wide), float(ends.min), float(ends.max)))
    return emitter.emit(relax.op.astype(wide, dtype))


def _growth(axis: Axis) -> float:
    """Returns the factor by which an axis grows, to sort by: axes that shrink come first."""
    if isinstance(axis.size, int) and isinstance(axis.result, int):
        return axis.result / max(1, axis.size)
    return 1.0
