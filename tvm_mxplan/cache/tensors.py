"""Tensors as bytes and bytes as tensors, without copies where the memory allows."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.element_types import numpy_type
from ..core.fingerprint import Buffer

if TYPE_CHECKING:
    import tvm


def tensor_bytes(tensor: tvm.runtime.Tensor) -> memoryview:
    """The bytes of a dense tensor on the CPU; a copy for types that numpy itself lacks."""
    try:
        array = np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError):
        array = np.ascontiguousarray(tensor.numpy())
    return array.reshape(-1).view(np.uint8).data


def as_array(buffer: Buffer, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """A view of ``buffer``; ValueError where it is not as large as the shape says."""
    return np.frombuffer(buffer, numpy_type(dtype)).reshape(tuple(shape))


def copy_together(buffers: Sequence[Buffer]) -> list[memoryview]:
    """Copies of ``buffers`` in one block of memory of its own, each at a multiple of 64.

    The block is mapped in small pages: numpy would ask for huge ones, and where a machine has to find them
    first, that costs more than all the copying.
    """
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    places, end = [], 0
    for view in views:
        places.append(end)
        end += -(-len(view) // 64) * 64
    if not end:
        return [memoryview(bytearray()) for _ in views]
    block = memoryview(mmap.mmap(-1, end, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    copies = [block[place : place + len(view)] for place, view in zip(places, views, strict=True)]
    for copy, view in zip(copies, views, strict=True):
        copy[:] = view
    return copies
