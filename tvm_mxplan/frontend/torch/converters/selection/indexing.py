"""Elements picked and put by their places: windows along an axis, samples of images, writing by indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax, te, tirx

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import Dim, compared, expression, same
from ...node import Emitter, Node, dims_of, dtype_of
from ..table import converts


@converts("unfold.default")
def _unfold(emitter: Emitter, node: Node) -> relax.Expr:
    """Takes windows of an axis, whose elements become a last axis."""
    source = node["self"]
    rank = len(dims_of(source))
    axis = node["dimension"] % rank
    count = node.result.shape[axis]
    within = np.arange(node["size"], dtype="int64")
    if isinstance(count, int):
        places = relax.const(np.arange(count)[:, None] * node["step"] + within, "int64")
    else:
        first = emitter.emit(relax.op.arange(0, expression(count), 1, "int64"))
        first = emitter.reshaped(first, [count, 1])
        first = emitter.emit(relax.op.multiply(first, relax.const(node["step"], "int64")))
        places = emitter.emit(relax.op.add(first, relax.const(within[None], "int64")))
    found = emitter.emit(relax.op.take(source, places, axis))
    order = [at for at in range(rank + 1) if at != axis + 1]
    return emitter.emit(relax.op.permute_dims(found, [*order, axis + 1]))


_METHODS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@converts("grid_sampler_2d.default", "grid_sampler_3d.default", "grid_sampler.default")
def _sampled(emitter: Emitter, node: Node) -> relax.Expr:
    """Samples an image at a grid with coordinates in the last axis; TVM wants them in the second."""
    source, rank = node["input"], len(dims_of(node["input"]))
    padding, corners = _PADDINGS[node["padding_mode"]], node["align_corners"]
    if corners and padding == "reflection":
        # Between the corners of one pixel is nothing: reflected as between those of two that are equal.
        for axis in range(2, rank):
            if dims_of(source)[axis] == 1:
                source = emitter.emit(relax.op.concat([source, source], axis))
    return emitter.emit(
        relax.op.image.grid_sample(
            source,
            emitter.emit(relax.op.permute_dims(node["grid"], [0, rank - 1, *range(1, rank - 1)])),
            method=_METHODS[node["interpolation_mode"]],
            layout="NCHW" if rank == 4 else "NCDHW",
            padding_mode=padding,
            align_corners=corners,
        )
    )


@dataclass(frozen=True)
class Indexed:
    """Axes of a tensor that is read or written by indices, and where the indices' own axes stand in that.

    Attributes
    ----------
    indexed, others : the axes with indices, and those without.
    before : how many axes without indices stand in front of the indices' in what is read or written.
    """

    indexed: Sequence[int]
    others: Sequence[int]
    before: int

    @classmethod
    def by(cls, indices: Sequence[relax.Expr | None], rank: int) -> Indexed:
        indexed = [axis for axis, index in enumerate(indices) if index is not None]
        others = [axis for axis in range(rank) if axis not in indexed]
        adjacent = indexed == list(range(indexed[0], indexed[-1] + 1))
        return cls(indexed, others, indexed[0] if adjacent else 0)


@converts("index_put.default")
def _index_put(emitter: Emitter, node: Node) -> relax.Expr:
    source, indices = node["self"], node["indices"]
    if any(index is not None and dtype_of(index) == "bool" for index in indices):
        return _put_where(emitter, node)
    dims = dims_of(source)
    written = Indexed.by(indices, len(dims))
    given = [indices[axis] for axis in written.indexed]
    width = max(len(dims_of(index)) for index in given)
    places = emitter.emit(relax.op.stack(of_one_shape(emitter, given, width, written.indexed, dims), -1))
    common = dims_of(places)[:-1]
    rest = [dims[axis] for axis in written.others]
    shown = [*rest[: written.before], *common, *rest[written.before :]]
    values = emitter.broadcast(node["values"], shown)
    middle = range(written.before, written.before + width)
    order = [*middle, *(axis for axis in range(len(shown)) if axis not in middle)]
    values = emitter.emit(relax.op.permute_dims(values, order))
    front = [*written.indexed, *written.others]
    data = emitter.emit(relax.op.permute_dims(source, front))
    data = emitter.emit(relax.op.scatter_nd(data, places, values, "add" if node["accumulate"] else "update"))
    return emitter.emit(relax.op.permute_dims(data, [front.index(axis) for axis in range(len(dims))]))


def of_one_shape(
    emitter: Emitter,
    indices: Sequence[relax.Expr],
    width: int,
    axes: Sequence[int],
    dims: Sequence[object],
) -> list[relax.Expr]:
    """Indices of one shape, counted from the beginning of their axes."""
    found = []
    for index, axis in zip(indices, axes, strict=True):
        index = emitter.cast(index, "int64")
        behind = emitter.emit(relax.op.add(index, emitter.scalar(dims[axis], "int64")))
        negative = emitter.emit(relax.op.less(index, relax.const(0, "int64")))
        index = emitter.emit(relax.op.where(negative, behind, index))
        found.append(emitter.reshaped(index, [1] * (width - len(dims_of(index))) + dims_of(index)))
    shapes = [dims_of(index) for index in found]
    common = [next((dim for dim in column if dim != 1), 1) for column in zip(*shapes, strict=True)]
    return [emitter.broadcast(index, common) for index in found]


def _put_where(emitter: Emitter, node: Node) -> relax.Expr:
    """Writes one value for all elements, or one for each row, where a mask over leading axes says so."""
    source, values = node["self"], node["values"]
    (mask, *more) = node["indices"]
    dims = dims_of(source)
    if all(dim == 1 for dim in dims_of(values)):
        values = emitter.reshaped(values, [])
    if mask is None or any(index is not None for index in more) or _reaches(values, mask, dims):
        raise UnsupportedError(
            "a mask picks as many elements as it has true ones; expected one value for all"
        )
    mask = emitter.reshaped(mask, [*dims_of(mask), *[1] * (len(dims) - len(dims_of(mask)))])
    if node["accumulate"]:
        values = emitter.emit(relax.op.add(source, values))
    return emitter.emit(relax.op.where(mask, emitter.broadcast(values, dims), source))


@converts("masked_scatter.default")
def _put_in_order(emitter: Emitter, node: Node) -> relax.Expr:
    """The tensor with others' elements, one after the other, where a mask says so."""
    emit, dims = emitter.emit, node.result.shape
    source, mask = (emitter.broadcast(node[name], dims) for name in ("self", "mask"))
    count = math.prod(dims)
    marks = emitter.reshaped(emitter.cast(mask, "int64"), [count])
    places = emit(relax.op.subtract(emit(relax.op.cumsum(marks, 0)), relax.const(1, "int64")))
    places = emit(relax.op.maximum(places, relax.const(0, "int64")))
    given = emitter.reshaped(node["source"], [math.prod(dims_of(node["source"]))])
    taken = emitter.reshaped(emit(relax.op.take(given, places, 0)), dims)
    return emit(relax.op.where(mask, emitter.cast(taken, node.result.dtype), source))


@converts("as_strided.default", "as_strided_copy.default")
def _strided(emitter: Emitter, node: Node) -> relax.Expr:
    """Elements by the distances between them in memory, in which those of the operand stand in a row."""
    source, shape, strides = node["self"], node.result.shape, node["stride"]
    first = node["storage_offset"] or 0
    reach = first
    for dim, stride in zip(shape, strides, strict=True):
        reach = reach + (dim - 1) * stride
    count = math.prod(dims_of(source))
    if 0 in shape:
        return emitter.broadcast(relax.const(0, node.result.dtype), shape)
    if compared("<", reach, count) is not True:
        raise UnsupportedError(
            f"it reads up to place {reach} of {count} elements; expected unfold, or slices"
        )

    if same(first, 0) and same(math.prod(shape), count) and _stand_in_a_row(shape, strides):
        return emitter.reshaped(source, list(shape))

    def kernel(flat: te.Tensor, *sizes: tirx.Expr) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            place = expression(first)
            for at, stride in zip(index, strides, strict=True):
                place = place + at * expression(stride)
            return flat(place)

        return te.compute(sizes, element, "strided")

    flat = emitter.reshaped(source, [count])
    return emitter.builder.emit_te(kernel, flat, *map(expression, shape), primfunc_name_hint="as_strided")


def _stand_in_a_row(shape: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """Whether each element stands behind the one before it; of axes of one element strides tell nothing."""
    row: Dim = 1
    for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
        if not same(dim, 1) and not same(stride, row):
            return False
        row = row * dim
    return True


@converts("diagonal_scatter.default")
def _put_on_diagonal(emitter: Emitter, node: Node) -> relax.Expr:
    """The tensor with others on a diagonal between two axes."""
    source, offset = node["self"], node["offset"]
    rank = len(dims_of(source))
    rows, columns = node["dim1"] % rank, node["dim2"] % rank

    def kernel(tensor: te.Tensor, part: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            rest = [at for axis, at in enumerate(index) if axis not in (rows, columns)]
            along = index[rows] if offset >= 0 else index[columns]
            here = (index[columns] - index[rows]).equal(offset)
            return tirx.if_then_else(here, part(*rest, along), tensor(*index))

        return te.compute(tensor.shape, element, "put")

    part = emitter.cast(node["src"], dtype_of(source))
    return emitter.builder.emit_te(kernel, source, part, primfunc_name_hint="put_diagonal")


def _reaches(values: relax.Expr, mask: relax.Expr, dims: Sequence[object]) -> bool:
    """Whether the values have an axis for the elements that a mask picks."""
    return len(dims_of(values)) > len(dims) - len(dims_of(mask))
