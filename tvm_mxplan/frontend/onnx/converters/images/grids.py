"""AffineGrid with an extent of 1 between the corners, which TVM's operator refuses, and of float64."""

from __future__ import annotations

from tvm import relax, te, tirx

from ...dimensions.dims import expression
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..table import converts


@converts("AffineGrid")
def _affine_grid(emitter: Emitter, node: Node) -> Value:
    """Centres or corners of pixels from -1 to 1 along each axis; the first corner of an axis of one pixel."""
    theta = emitter.tensor(node.input(0))
    count, _, *image = emitter.dims(node.input(1))
    dtype, corners = dtype_of(theta), bool(node.attribute("align_corners", 0))
    if dtype != "float64" and not (corners and any(isinstance(dim, int) and dim == 1 for dim in image)):
        raise NotTaken
    inner = "float64" if dtype == "float64" else "float32"

    def kernel(theta: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            batch, *places, row = index
            total = theta[batch, row, len(image)].astype(inner)
            # The last axis of the image is the first coordinate.
            for column, (place, extent) in enumerate(zip(places[::-1], image[::-1], strict=True)):
                steps, half = expression(extent), tirx.const(0 if corners else 0.5, inner)
                steps = tirx.max(steps - 1, tirx.const(1, "int64")) if corners else steps
                across = (place.astype(inner) + half) * tirx.const(2, inner) / steps.astype(inner)
                coordinate = across - tirx.const(1, inner)
                total = total + theta[batch, row, column].astype(inner) * coordinate
            return total.astype(dtype)

        shape = [expression(dim) for dim in (count, *image, len(image))]
        return te.compute(shape, element, "affine_grid")

    return emitter.builder.emit_te(kernel, theta, primfunc_name_hint="affine_grid")
