"""Numbers that verified kernels are run on: integers from one pool, another sequence for each place.

The pool's length is a prime, so that a block that was read in the place of another one shows, however large
the tensor.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_POOL = 262139
_ALIGNMENT = 16  # numbers
_SHIFT = 65537  # between the pool's numbers that two operands start at


def drawn(shape: tuple[int, ...], place: int, most: int = 4, divisor: float = 1.0) -> Array:
    """Integers from -most to most over ``divisor``, another sequence for each place."""
    pool, factor = _pool(most), np.float32(1 / divisor)
    count, start = math.prod(shape), place * _SHIFT % _POOL
    found = aligned(count)
    done = 0
    while done < count:
        part = min(count - done, _POOL - start)
        np.multiply(pool[start : start + part], factor, out=found[done : done + part])
        done, start = done + part, 0
    return found.reshape(shape)


@functools.lru_cache(maxsize=8)
def _pool(most: int) -> Array:
    return np.random.default_rng(20231).integers(-most, most + 1, _POOL).astype(np.float32)


def aligned(count: int) -> Array:
    """Numbers that are not written yet, aligned as the runtime wants constants that it uses in place."""
    memory = np.empty(count + _ALIGNMENT, np.float32)
    begin = -(memory.ctypes.data // memory.itemsize) % _ALIGNMENT
    return memory[begin : begin + count]
