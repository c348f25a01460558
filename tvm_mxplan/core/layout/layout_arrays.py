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
    tails = layout.tails(array.shape)
    padded = np.pad(array, [(0, tails.get(dim, 0)) for dim in range(array.ndim)]) if tails else array
    split = padded.reshape(layout.split_shape(array.shape))
    return np.asarray(split.transpose(layout.stored_order()), order="C")


def unpack(array: np.ndarray, layout: Layout, shape: Sequence[int]) -> np.ndarray:
    """The standard layout of what :func:`pack` made of an array of ``shape``.

    Raises
    ------
    ValueError : ``array`` has not the physical shape of ``layout`` for ``shape``.
    """
    return np.asarray(crop(unpack_padded(array, layout, shape), shape), order="C")


def unpack_padded(array: np.ndarray, layout: Layout, shape: Sequence[int]) -> np.ndarray:
    """The standard layout with the padding still there; a view of ``array`` where that is possible."""
    expected = layout.physical_shape(shape)
    if array.shape != expected:
        raise ValueError(f"layout {layout.tag} of {tuple(shape)} has the shape {expected}, not {array.shape}")
    return array.transpose(layout.split_order()).reshape(layout.padded_shape(shape))


def crop(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The view of ``array`` without its padding."""
    return array[tuple(slice(extent) for extent in shape)]
