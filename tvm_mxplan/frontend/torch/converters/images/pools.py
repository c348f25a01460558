"""Largest elements of windows and of parts of an axis, and where they stand; pixels made of channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ...node import Emitter, Node, dims_of, dtype_of
from ..reductions import first_extreme
from ..table import converts
from ..windows import extents

_POOLS = {1: relax.op.nn.max_pool1d, 2: relax.op.nn.max_pool2d, 3: relax.op.nn.max_pool3d}


@converts(*(f"max_pool{axes}d.default" for axes in _POOLS))
def _largest(emitter: Emitter, node: Node) -> relax.Expr:
    return _pooled(emitter, node, int(node.operator[len("aten.max_pool")]))


@converts("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def _largest_and_where(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    axes = int(node.operator[len("aten.max_pool")])
    return [_pooled(emitter, node, axes), _where_largest(emitter, node, axes)]


def _pooled(emitter: Emitter, node: Node, axes: int) -> relax.Expr:
    source, dims = node["self"], dims_of(node["self"])
    batched = len(dims) == axes + 2
    if not batched:
        source = emitter.reshaped(source, [1, *dims])
    size = extents(node["kernel_size"], axes)
    strides = extents(node["stride"] or size, axes)
    padding, dilation = (extents(node[name], axes) for name in ("padding", "dilation"))
    found = emitter.emit(
        _POOLS[axes](source, size, strides, [*padding, *padding], dilation, ceil_mode=bool(node["ceil_mode"]))
    )
    return found if batched else emitter.reshaped(found, dims_of(found)[1:])


def _where_largest(emitter: Emitter, node: Node, axes: int) -> relax.Expr | None:
    """The place of each window's largest element in its image, the first of equals; None where sizes vary."""
    source, result = node["self"], node.stated[0]
    assert result is not None
    dims, counts = dims_of(source)[-axes:], result.shape[-axes:]
    if not all(isinstance(dim, int) for dim in [*dims, *counts]):
        return None
    size = extents(node["kernel_size"], axes)
    strides = extents(node["stride"] or size, axes)
    padding, dilation = (extents(node[name], axes) for name in ("padding", "dilation"))
    lead = dims_of(source)[:-axes]
    places = [  # by axis, the place of each element of each window, [count, size]; some are padding
        np.arange(count)[:, None] * stride - pad + np.arange(window) * step
        for count, stride, pad, window, step in zip(counts, strides, padding, size, dilation, strict=True)
    ]
    found = source
    for at, (place, extent) in enumerate(zip(places, dims, strict=True)):
        flat = np.clip(place, 0, extent - 1).reshape(-1)
        found = emitter.emit(relax.op.take(found, relax.const(flat, "int64"), len(lead) + at))
    apart = [*lead, *(length for place in places for length in place.shape)]
    found = emitter.reshaped(found, apart)
    first = len(lead)
    order = [*range(first), *range(first, first + 2 * axes, 2), *range(first + 1, first + 2 * axes, 2)]
    found = emitter.emit(relax.op.permute_dims(found, order))
    windows = math.prod(size)
    found = emitter.reshaped(found, [*lead, *counts, windows])
    inside, flat_places = _tables(places, dims)
    shape = [*counts, windows]
    dtype = dtype_of(source)
    least = relax.const(-np.inf if "float" in dtype else np.iinfo(dtype).min, dtype)
    found = emitter.emit(relax.op.where(relax.const(inside.reshape(shape), "bool"), found, least))
    largest = emitter.cast(emitter.emit(relax.op.argmax(found, -1, keepdims=True)), "int64")
    table = emitter.broadcast(relax.const(flat_places.reshape(shape), "int64"), dims_of(found))
    return emitter.emit(relax.op.squeeze(emitter.emit(relax.op.gather_elements(table, largest, -1)), [-1]))


def _tables(places: Sequence[np.ndarray], dims: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """For each window and element: whether it is of the image, and its place there, [*counts, *sizes]."""
    axes = len(places)
    inside, flat = np.ones((), bool), np.zeros((), "int64")
    for at, (place, extent) in enumerate(zip(places, dims, strict=True)):
        shape = [1] * (2 * axes)
        shape[at], shape[axes + at] = place.shape
        inside = inside & ((place >= 0) & (place < extent)).reshape(shape)
        flat = flat * extent + np.clip(place, 0, extent - 1).reshape(shape)
    return inside, flat


@converts("adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def _largest_of_parts(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    """The largest elements of parts that may overlap, axis after axis, each as long as the longest.

    In training the last axis is the first one, so that the first of equal elements in memory is found.
    """
    found, sizes = node["self"], list(node["output_size"])
    axes = list(enumerate(sizes, len(dims_of(node["self"])) - len(sizes)))
    for at, count in reversed(axes) if emitter.trains else axes:
        extent = dims_of(found)[at]
        if not isinstance(extent, int) or not isinstance(count, int):
            raise UnsupportedError("parts of an axis whose length varies; expected a length that is a number")
        starts = np.arange(count) * extent // count
        ends = -(-(np.arange(count) + 1) * extent // count)
        length = int((ends - starts).max())
        places = np.minimum(starts[:, None] + np.arange(length), ends[:, None] - 1)
        dims = dims_of(found)
        found = emitter.emit(relax.op.take(found, relax.const(places.reshape(-1), "int64"), at))
        found = emitter.reshaped(found, [*dims[:at], count, length, *dims[at + 1 :]])
        if emitter.trains:
            found, _ = first_extreme(emitter, found, at + 1, largest=True)
            found = emitter.emit(relax.op.squeeze(found, [at + 1]))
        else:
            found = emitter.emit(relax.op.max(found, [at + 1]))
    return [found, None]


@converts("pixel_shuffle.default")
def _pixels_from_channels(emitter: Emitter, node: Node) -> relax.Expr:
    source, factor = node["self"], node["upscale_factor"]
    *lead, channels, height, width = dims_of(source)
    first = len(lead)
    kept = int(channels) // factor**2
    found = emitter.reshaped(source, [*lead, kept, factor, factor, height, width])
    order = [*range(first), first, first + 3, first + 1, first + 4, first + 2]
    found = emitter.emit(relax.op.permute_dims(found, order))
    return emitter.reshaped(found, [*lead, kept, height * factor, width * factor])
