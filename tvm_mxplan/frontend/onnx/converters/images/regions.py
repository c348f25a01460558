"""RoiAlign: parts of images, each in a grid of bins, of every bin the mean or the largest of samples.

Regions are scaled first, then moved by half a pixel where coordinates are those of pixels' middles.  Means
are an operator of TVM, save those of as many samples as a region is large, which may be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax, te, tirx

from .....errors import InvalidInputError
from ...dimensions.dims import expression
from ...node import Emitter, Node
from ...values import Value, dtype_of
from ..numbers import constant, least
from ..table import converts


@dataclass(frozen=True)
class _Bins:
    """The bins that regions are cut into; ``samples`` along each axis of a bin, 0 for one to each pixel.

    Attributes
    ----------
    least : the smallest extent of a region.
    """

    size: tuple[int, int]
    samples: int
    largest: bool
    least: float


@converts("RoiAlign", first_opset=10)
def _region_align(emitter: Emitter, node: Node) -> Value:
    data, regions, images = (emitter.tensor(node.input(at)) for at in range(3))
    mode = node.text("mode", "avg")
    coordinates = node.text(
        "coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel"
    )
    if mode not in ("avg", "max") or coordinates not in ("half_pixel", "output_half_pixel"):
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: mode {mode!r}, coordinates {coordinates!r}; expected avg or "
            "max, and half_pixel or output_half_pixel"
        )
    middles, dtype = coordinates == "half_pixel", dtype_of(regions)
    scale = constant(node.attribute("spatial_scale", 1.0), dtype)
    regions = emitter.emit(relax.op.multiply(regions, scale))
    if middles:
        regions = emitter.emit(relax.op.subtract(regions, constant(0.5, dtype)))
    bins = _Bins(
        (node.attribute("output_height", 1), node.attribute("output_width", 1)),
        node.attribute("sampling_ratio", 0),
        mode == "max",
        0.0 if middles else 1.0,
    )
    if mode == "avg" and (bins.samples > 0 or not middles):
        column = emitter.emit(relax.op.astype(relax.op.expand_dims(images, 1), dtype))
        rows = emitter.emit(relax.op.concat([column, regions], 1))
        return emitter.emit(
            relax.op.vision.roi_align(
                data, rows, bins.size, 1.0, bins.samples, aligned=middles, layout="NCHW", mode="avg"
            )
        )
    return emitter.builder.emit_te(
        lambda *tensors: _aligned(tensors, bins), data, regions, images, primfunc_name_hint="region_align"
    )


def _aligned(operands: Sequence[te.Tensor], bins: _Bins) -> te.Tensor:
    data, regions, images = operands
    dtype = data.dtype

    def element(region: tirx.Var, channel: tirx.Var, *at: tirx.Var) -> tirx.Expr:
        loops, places, count = [], [], tirx.const(1, "int32")
        for axis in range(2):  # of a region, the column comes before the row
            start, end = (regions(region, edge - axis).astype(dtype) for edge in (1, 3))
            extent = tirx.max(end - start, tirx.const(bins.least, dtype))
            size = extent / tirx.const(bins.size[axis], dtype)
            turns = tirx.const(bins.samples, "int32") if bins.samples > 0 else tirx.ceil(size).astype("int32")
            count = count * turns
            # A loop without turns would leave the result as it is: one turn at least, over 0.
            turns = tirx.max(turns, tirx.const(1, "int32"))
            loop = te.reduce_axis((0, turns), f"sample{axis}")
            loops.append(loop)
            step = (tirx.Cast(dtype, loop.var) + tirx.const(0.5, dtype)) * size / tirx.Cast(dtype, turns)
            places.append(start + tirx.Cast(dtype, at[axis]) * size + step)
        inside, parts = _parts(data, (images[region], channel), places)
        found = parts[0]
        for part in parts[1:]:
            found = tirx.max(found, part) if bins.largest else found + part
        empty = count <= 0
        found = tirx.if_then_else(tirx.And(inside, tirx.Not(empty)), found, tirx.const(0, dtype))
        if not bins.largest:
            return te.sum(found / tirx.Cast(dtype, tirx.max(count, 1)), axis=loops)
        lowest = tirx.const(least(str(dtype)), dtype)
        reducer = te.comm_reducer(lambda a, b: tirx.max(a, b), lambda _: lowest, name="largest")
        return reducer(found, axis=loops)

    return te.compute([regions.shape[0], data.shape[1], *map(expression, bins.size)], element, "regions")


def _parts(
    data: te.Tensor, prefix: Sequence[tirx.Expr], places: Sequence[tirx.Expr]
) -> tuple[tirx.Expr, list[tirx.Expr]]:
    """Whether a place lies on the image, and the four pixels around it, each times its weight."""
    dtype = data.dtype
    inside, ends = tirx.const(True, "bool"), []
    for place, extent in zip(places, data.shape[2:], strict=True):
        size = tirx.Cast(dtype, extent)
        on = tirx.And(place >= tirx.const(-1.0, dtype), place <= size)
        inside = tirx.And(inside, on)
        kept = tirx.max(tirx.min(place, size - tirx.const(1.0, dtype)), tirx.const(0.0, dtype))
        low = tirx.floor(kept)
        share, near = kept - low, tirx.Cast("int64", low)
        far = tirx.min(near + 1, tirx.Cast("int64", extent) - 1)
        ends.append([(near, tirx.const(1.0, dtype) - share), (far, share)])
    return inside, [
        data(*prefix, row, column) * (high * wide) for row, high in ends[0] for column, wide in ends[1]
    ]
