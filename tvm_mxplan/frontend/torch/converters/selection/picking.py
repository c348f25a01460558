"""Elements picked by tensors of indices, ``source[:, rows, columns]``.

One axis is indexed                a take along it
each index along axes of its own   a take along each axis, one after the other, as for windows (``unfold``)
indices share axes                 the indexed axes in front, all indices in one tensor, ``gather_nd``
a constant mask                    the places where it is true
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from .....passes.relax_types import constant_of
from ....onnx.dimensions.dims import Dim, same
from ...node import Emitter, Node, dims_of, dtype_of
from ..table import converts, converts_complex
from .indexing import Indexed, of_one_shape


@converts_complex("index.Tensor")
@converts("index.Tensor")
def _index(emitter: Emitter, node: Node) -> relax.Expr:
    source = node["self"]
    indices = _places(node["indices"])
    axes = Indexed.by(indices, len(dims_of(source)))
    given = [_integers(emitter, indices[axis]) for axis in axes.indexed]
    width = max(len(dims_of(index)) for index in given)
    if len(given) == 1:
        return emitter.emit(relax.op.take(source, given[0], axes.indexed[0]))
    shapes = [[1] * (width - len(dims_of(index))) + dims_of(index) for index in given]
    if all(sum(not same(dim, 1) for dim in column) <= 1 for column in zip(*shapes, strict=True)):
        return _along_axes(emitter, source, axes, given, shapes)
    return _gathered(emitter, source, axes, given, width)


def _places(indices: Sequence[relax.Expr | None]) -> list[relax.Expr | None]:
    """Indices, with the places where a mask is true in a mask's stead."""
    found: list[relax.Expr | None] = []
    for index in indices:
        if index is None or dtype_of(index) != "bool":
            found.append(index)
        elif (mask := constant_of(index)) is not None:
            found += [relax.const(places, "int64") for places in np.nonzero(mask)]
        else:
            raise UnsupportedError(
                "a mask picks as many elements as it has true ones; expected torch.where, or a mask that "
                "follows from no input"
            )
    return found


def _integers(emitter: Emitter, index: relax.Expr) -> relax.Expr:
    return emitter.cast(index, "int64") if dtype_of(index) not in ("int32", "int64") else index


def _along_axes(
    emitter: Emitter,
    source: relax.Expr,
    axes: Indexed,
    indices: Sequence[relax.Expr],
    shapes: Sequence[Sequence[Dim]],
) -> relax.Expr:
    """Takes along one axis after the other, whose results' axes are put in the indices' order."""
    width = len(shapes[0])
    for axis, index in zip(axes.indexed, indices, strict=True):
        flat = emitter.reshaped(index, [math.prod(dims_of(index))])
        source = emitter.emit(relax.op.take(source, flat, axis))
    # Each indexed axis as the axes of its index that are not 1, by their places in the common shape.
    own = {
        axis: [at for at in range(width) if shape[at] != 1]
        for axis, shape in zip(axes.indexed, shapes, strict=True)
    }
    extents = dict(zip(axes.indexed, shapes, strict=True))
    apart: list[Dim] = []
    labels: list[tuple[str, int]] = []
    for axis, dim in enumerate(dims_of(source)):
        if axis in own:
            apart += [extents[axis][at] for at in own[axis]]
            labels += [("index", at) for at in own[axis]]
        else:
            apart.append(dim)
            labels.append(("rest", axis))
    common = [("index", at) for at in range(width)]
    others = [("rest", axis) for axis in axes.others]
    wanted = [*others[: axes.before], *common, *others[axes.before :]]
    order = [labels.index(label) for label in wanted if label in labels]
    found = emitter.reshaped(source, apart)
    if order != sorted(order):
        found = emitter.emit(relax.op.permute_dims(found, order))
    return emitter.reshaped(found, [apart[labels.index(one)] if one in labels else 1 for one in wanted])


def _gathered(
    emitter: Emitter, source: relax.Expr, axes: Indexed, indices: Sequence[relax.Expr], width: int
) -> relax.Expr:
    dims = dims_of(source)
    places = of_one_shape(emitter, indices, width, axes.indexed, dims)
    stacked = emitter.emit(relax.op.stack(places, -1))
    front = [*axes.indexed, *axes.others]
    if front != sorted(front):
        source = emitter.emit(relax.op.permute_dims(source, front))
    found = emitter.emit(relax.op.gather_nd(source, stacked))
    if axes.before == 0:
        return found
    rest = range(width, width + len(axes.others))
    order = [*rest[: axes.before], *range(width), *rest[axes.before :]]
    return emitter.emit(relax.op.permute_dims(found, order))
