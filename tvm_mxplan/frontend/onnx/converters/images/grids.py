"""AffineGrid and GridSample with one pixel between the corners, which TVM's operators divide by zero for."""

from __future__ import annotations

from dataclasses import replace

from tvm import relax, te, tirx

from ... import stock
from ...dimensions.dims import expression, same
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


@converts("GridSample")
def _grid_sample(emitter: Emitter, node: Node) -> Value:
    """Reflected between the corners of one pixel: as between those of two that are equal."""
    data = node.input(0)
    narrow = [axis for axis, dim in enumerate(emitter.shape(data)) if axis > 1 and same(dim, 1)]
    reflected = node.text("padding_mode", "zeros") == "reflection" and node.attribute("align_corners", 0)
    if not narrow or not reflected:
        raise NotTaken
    data = emitter.tensor(data)
    for axis in narrow:
        data = emitter.emit(relax.op.concat([data, data], axis))
    (result,) = stock.converted(emitter, replace(node, inputs=[data, *node.inputs[1:]]))
    return result
