"""Images made smaller or larger, by PyTorch's rules.

whole factors, linear and cubic ones    relax.op.image.resize2d and resize3d, which libraries know
the nearest pixel                       a take along each axis, with the places that float32 gives
stated factors other than those that    axis after axis by a table of places and weights, as ONNX's Resize
result / size is
antialiasing                            a product with a matrix of weights along each axis

TVM's importer finds the nearest pixel by other coordinates, lets go of stated factors, and takes antialiasing
for none, each another function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ....onnx.converters.images.interpolation import Axis, Rule, taps_of
from ....onnx.converters.images.resize_kernels import resized_along
from ....onnx.dimensions.dims import Dim, expression, same
from ...node import Emitter, Node, dims_of, dtype_of
from ..table import converts

_METHODS = {
    "upsample_nearest1d": "nearest",
    "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest",
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear",
    "upsample_bicubic2d": "cubic",
}
_CUBIC, _ANTIALIASED_CUBIC = -0.75, -0.5
"""Keys's coefficients, as PyTorch takes them."""


@converts(*(f"{name}.vec" for name in _METHODS))
def _resized(emitter: Emitter, node: Node) -> relax.Expr:
    method = _METHODS[node.operator.split(".")[1]]
    source, corners = node["input"], bool(node.operands.get("align_corners"))
    axes = _axes(source, node, None if corners else node["scale_factors"])
    if all(axis.scale is None and same(axis.size, axis.result) for axis in axes):
        return source
    exact = all(axis.scale is None for axis in axes)
    if method == "nearest" and not (exact and all(map(_is_multiple, axes))):
        return _nearest(emitter, source, axes)
    if exact and dtype_of(source) == "float32" and _is_an_operator(method, corners, axes):
        return _by_operator(emitter, source, axes, method, corners)
    rule = Rule(method, "align_corners" if corners else "half_pixel", "", _CUBIC)
    dtype = dtype_of(source)
    found = emitter.cast(source, dtype if dtype == "float64" else "float32")
    for axis in reversed(axes):
        found = _rounded(emitter, resized_along(emitter.builder, found, axis, rule), dtype)
    return emitter.cast(found, dtype)


def _rounded(emitter: Emitter, numbers: relax.Expr, dtype: str) -> relax.Expr:
    """The numbers; for ``dtype`` of integers the nearest ones, which PyTorch makes along each axis."""
    if "int" not in dtype:
        return numbers
    half = relax.const(0.5, dtype_of(numbers))
    whole = emitter.emit(relax.op.floor(emitter.emit(relax.op.add(numbers, half))))
    return emitter.emit(relax.op.clip(whole, np.iinfo(dtype).min, np.iinfo(dtype).max))


def _axes(source: relax.Expr, node: Node, factors: Sequence[float] | None) -> list[Axis]:
    """The axes behind the channels, with factors where they are not those of the sizes."""
    dims = dims_of(source)
    found = []
    for at, (size, result) in enumerate(zip(dims[2:], node.result.shape[2:], strict=True)):
        factor = None if factors is None else factors[at]
        if factor is not None and same(result, _times(size, factor)):
            factor = None
        found.append(Axis(size, result, scale=factor, axis=at + 2))
    return found


def _times(size: Dim, factor: float) -> Dim:
    """The product with a whole factor; -1 for another one."""
    if isinstance(size, int):
        return int(size * factor) if (size * factor).is_integer() else -1
    return size * int(factor) if float(factor).is_integer() else -1


def _is_multiple(axis: Axis) -> bool:
    if isinstance(axis.size, int) and isinstance(axis.result, int):
        return axis.size > 0 and axis.result % axis.size == 0
    return any(same(axis.result, axis.size * factor) for factor in (2, 3, 4, 8))


def _is_an_operator(method: str, corners: bool, axes: Sequence[Axis]) -> bool:
    if corners and any(axis.result == 1 for axis in axes):  # the operators divide by one less
        return False
    known = all(isinstance(dim, int) for axis in axes for dim in (axis.size, axis.result))
    return len(axes) == 2 or (len(axes) == 3 and known and method != "cubic" and not corners)


def _by_operator(
    emitter: Emitter, source: relax.Expr, axes: Sequence[Axis], method: str, corners: bool
) -> relax.Expr:
    size = relax.ShapeExpr([expression(axis.result) for axis in axes])
    coordinates = "align_corners" if corners else "asymmetric" if method == "nearest" else "half_pixel"
    name = "nearest_neighbor" if method == "nearest" else method
    rounding = "floor" if method == "nearest" else ""
    operator, layout = (
        (relax.op.image.resize2d, "NCHW") if len(axes) == 2 else (relax.op.image.resize3d, "NCDHW")
    )
    if method == "cubic":
        return emitter.emit(operator(source, size, None, layout, name, coordinates, cubic_alpha=_CUBIC))
    return emitter.emit(operator(source, size, None, layout, name, coordinates, rounding))


def _nearest(emitter: Emitter, source: relax.Expr, axes: Sequence[Axis]) -> relax.Expr:
    for axis in axes:
        if isinstance(axis.size, int) and isinstance(axis.result, int):
            exact = np.float32(axis.size) / np.float32(axis.result)
            step = np.float32(1.0 / axis.scale) if axis.scale else exact
            places = np.floor(np.arange(axis.result, dtype="float32") * step).astype("int64")
            source = emitter.emit(
                relax.op.take(source, relax.const(np.minimum(places, axis.size - 1), "int64"), axis.axis)
            )
        else:
            source = resized_along(emitter.builder, source, axis, Rule("nearest", "asymmetric", "floor"))
    return source


@converts(
    *(
        f"_upsample_{method}_aa.{overload}"
        for method in ("bilinear2d", "bicubic2d")
        for overload in ("default", "vec")
    )
)
def _antialiased(emitter: Emitter, node: Node) -> relax.Expr:
    found = node[next(name for name in ("self", "input") if name in node.operands)]
    dtype = dtype_of(found)
    if dtype not in ("float32", "float64", "uint8"):
        raise UnsupportedError(f"antialiasing of {dtype}; expected float32, float64 or uint8")
    inner = dtype if "float" in dtype else "float32"
    found = emitter.cast(found, inner)
    method = "linear" if "_bilinear2d_" in node.operator else "cubic"
    rule = Rule(method, "half_pixel", "", _ANTIALIASED_CUBIC, exclude_outside=True, antialias=True)
    for axis, factor in [*zip((2, 3), _factors(node), strict=True)][::-1]:
        size, result = dims_of(found)[axis], node.result.shape[axis]
        if not isinstance(size, int) or not isinstance(result, int):
            raise UnsupportedError(
                "antialiasing of an image whose size varies; expected a size that is a number"
            )
        step = _step(size, result, factor, bool(node["align_corners"]))
        matrix = _weights(size, result, rule, step).astype(inner)
        if axis == 2:
            found = emitter.emit(relax.op.matmul(relax.const(matrix, inner), found))
        else:
            found = emitter.emit(relax.op.matmul(found, relax.const(np.ascontiguousarray(matrix.T), inner)))
        found = _rounded(emitter, found, dtype)
    return emitter.cast(found, dtype)


def _factors(node: Node) -> Sequence[float | None]:
    """The factors that were stated for height and width, None where they are those of the sizes."""
    given = node.operands.get("scale_factors")
    return given if given is not None else (node.operands.get("scales_h"), node.operands.get("scales_w"))


def _step(size: int, result: int, factor: float | None, corners: bool) -> float:
    """The distance between elements of the result, in elements of the operand."""
    if corners:
        return (size - 1) / (result - 1) if result > 1 else 0.0
    return 1 / factor if factor else size / result


def _weights(size: int, result: int, rule: Rule, step: float) -> np.ndarray:
    """The weight of each element of an axis in each of the result, [result, size]."""
    centres = (np.arange(result) + 0.5) * step - 0.5
    matrix = np.zeros((result, size))
    for place, weight in taps_of(centres, Axis(size, result, scale=1 / max(step, 1.0)), rule, np):
        inside = (place >= 0) & (place < size)
        np.add.at(matrix, (np.nonzero(inside)[0], place[inside].astype(int)), weight[inside])
    return matrix
