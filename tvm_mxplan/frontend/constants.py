"""Tensors that are read once: into memory that is aligned as TVM's own, which becomes a constant as it is."""

from __future__ import annotations

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

_ALIGNMENT = 64
"""Of TVM's tensors; its kernels count on it."""
_LEAST = 1 << 16
"""Bytes from which on a copy is worth avoiding."""
_SHARED_KINDS = "iuf"


def aligned_bytes(nbytes: int) -> np.ndarray:
    """As many bytes, not set, from an address that TVM's kernels can take."""
    room = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + nbytes]


def constant(array: np.ndarray) -> tvm.ir.GenericConst:
    """The array as a constant of Relax, which shares its memory where that is aligned as TVM wants it."""
    shared = (
        array.dtype.kind in _SHARED_KINDS
        and array.flags.c_contiguous
        and array.flags.writeable
        and array.nbytes >= _LEAST
        and array.ctypes.data % _ALIGNMENT == 0
    )
    tensor = tvm_ffi.from_dlpack(array) if shared else tvm.runtime.tensor(array)
    return relax.const(tensor, str(array.dtype))
