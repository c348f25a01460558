"""Arrays from the standard layout into any other and back, in numpy: for tests and tools.

pack    [1,3,2,2] nchw  ->  [1,1,2,2,16] nChw16c, its 13 channels of padding zero
unpack  the inverse: padding is cropped
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .layout import Layout


def pack(array: np.ndarray, layout: Layout) -> np.ndarray:
    """``array`` in the physical shape of ``layout``, with zeros in the padding."""
    padded = layout.padded_shape(array.shape)
    grown = np.pad(array, [(0, new - old) for old, new in zip(array.shape, padded, strict=True)])
    axes = split_axes(layout)
    extents = dict(zip(physical_axes(layout), layout.physical_shape(array.shape), strict=True))
    split = grown.reshape([extents[axis] for axis in axes])
    return np.ascontiguousarray(split.transpose([axes.index(axis) for axis in physical_axes(layout)]))


def unpack(array: np.ndarray, layout: Layout, shape: Sequence[int]) -> np.ndarray:
    """The standard layout of what :func:`pack` made of an array of ``shape``.

    Raises
    ------
    ValueError : ``array`` has not the physical shape of ``layout`` for ``shape``.
    """
    expected = layout.physical_shape(shape)
    if array.shape != expected:
        raise ValueError(f"layout {layout.tag} of {tuple(shape)} has the shape {expected}, not {array.shape}")
    axes, stored = split_axes(layout), physical_axes(layout)
    logical = array.transpose([stored.index(axis) for axis in axes]).reshape(layout.padded_shape(shape))
    return np.ascontiguousarray(logical[tuple(slice(extent) for extent in shape)])


def physical_axes(layout: Layout) -> list[tuple[int, int]]:
    """What each physical axis is: (dimension, 0) counts its blocks, (dimension, k) is its k-th block."""
    axes = [(dim, 0) for dim in layout.order]
    for at, (_, dim) in enumerate(layout.blocks):
        axes.append((dim, 1 + sum(other == dim for _, other in layout.blocks[:at])))
    return axes


def split_axes(layout: Layout) -> list[tuple[int, int]]:
    """The same axes in the order of an array whose dimensions were split where they stand."""
    return sorted(physical_axes(layout))
