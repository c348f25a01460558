"""Arrays of numpy as tensors of TVM's, without a copy, also in types that DLPack has and numpy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np


def tensor_of(array: np.ndarray[Any, Any]) -> Any:
    """The tensor whose bytes are those of ``array``; one in bfloat16 has to be dense.

    The runtime library is loaded.
    """
    import tvm_ffi

    if array.dtype.name != "bfloat16":
        return tvm_ffi.from_dlpack(array)
    raw = tvm_ffi.from_dlpack(array.reshape(-1).view(np.uint8))
    view = tvm_ffi.get_global_func("tvm_mxplan.arena.tensor")
    return view(raw, 0, array.shape, tvm_ffi.dtype(array.dtype.name))
