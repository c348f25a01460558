"""Arrays as constants of Relax, without a copy of those that were read into aligned memory."""

from __future__ import annotations

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from .aligned import ALIGNMENT

_LEAST = 1 << 16
"""Bytes from which on a copy is worth avoiding."""
_SHARED_KINDS = "iuf"


def constant(array: np.ndarray) -> tvm.ir.GenericConst:
    """The array as a constant of Relax, which shares its memory where that is aligned as TVM wants it."""
    shared = (
        array.dtype.kind in _SHARED_KINDS
        and array.flags.c_contiguous
        and array.flags.writeable
        and array.nbytes >= _LEAST
        and array.ctypes.data % ALIGNMENT == 0
    )
    if shared:
        return relax.const(tvm_ffi.from_dlpack(array), str(array.dtype))
    # A folded array may be a view of a constant, which DLPack does not hand on.
    tensor = tvm.runtime.tensor(array if array.flags.writeable else array.copy())
    return relax.const(tensor, str(array.dtype))
