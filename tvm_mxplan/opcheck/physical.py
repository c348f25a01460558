"""Bytes as they stand in memory, read as the tensor that a layout says they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import crop, unpack_padded
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError

from .estimate import Array


@dataclass(frozen=True)
class CheckedTensor:
    """One value's bytes at one moment.

    Attributes
    ----------
    logical : the numbers in logical order; a view of the bytes where that is possible.
    dirty : elements in the padding of a blocked layout that are not zero.
    address : where the first byte stood.
    """

    raw: Array
    logical: Array
    dirty: int
    address: int


def read(raw: Array, value: ir.Value, address: int = 0) -> CheckedTensor:
    """The tensor at the start of ``raw``, bytes in the layout of ``value``, whose shape is of numbers."""
    layout, shape = parse_layout(value.layout), static_shape(value.shape)
    try:
        dtype = numpy_type(value.dtype)
    except TypeError:
        raise UnsupportedError(f"value {value.name}: opcheck reads no {value.dtype}; leave it out") from None
    nbytes = layout.elements(shape) * dtype.itemsize
    stored = raw[:nbytes].view(dtype).reshape(layout.physical_shape(shape))
    whole = unpack_padded(stored, layout, shape)
    logical = crop(whole, shape)
    dirty = 0
    if logical.size != whole.size:
        bits = np.dtype(f"u{whole.dtype.itemsize}")  # nothing but zero bytes is a zero
        dirty = int(np.count_nonzero(whole.view(bits)) - np.count_nonzero(logical.view(bits)))
    return CheckedTensor(raw, logical, dirty, address)
