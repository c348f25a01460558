"""Elements picked and put by their places: windows along an axis, samples of images, writing by indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import expression
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


@converts("grid_sampler_2d.default", "grid_sampler.default")
def _sampled(emitter: Emitter, node: Node) -> relax.Expr:
    """Samples an image at a grid with coordinates in the last axis; TVM wants them in the second."""
    if len(dims_of(node["input"])) != 4:
        raise UnsupportedError("samples of volumes are not supported; expected an image of 4 dimensions")
    grid = emitter.emit(relax.op.permute_dims(node["grid"], [0, 3, 1, 2]))
    return emitter.emit(
        relax.op.image.grid_sample(
            node["input"],
            grid,
            method=_METHODS[node["interpolation_mode"]],
            layout="NCHW",
            padding_mode=_PADDINGS[node["padding_mode"]],
            align_corners=node["align_corners"],
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


def _reaches(values: relax.Expr, mask: relax.Expr, dims: Sequence[object]) -> bool:
    """Whether the values have an axis for the elements that a mask picks."""
    return len(dims_of(values)) > len(dims) - len(dims_of(mask))
