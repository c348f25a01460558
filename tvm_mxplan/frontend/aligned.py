"""Memory that TVM's tensors can be made of without a copy."""

from __future__ import annotations

import numpy as np

ALIGNMENT = 64
"""Bytes, of TVM's tensors; its kernels count on it."""


def aligned_bytes(nbytes: int) -> np.ndarray:
    """As many bytes, not set, from an address that TVM's kernels can take."""
    room = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + nbytes]
