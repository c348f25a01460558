"""Element types by the names that TVM gives them, and the bytes of tensors of them.

    item_bytes("bfloat16")                               2
    stored_bytes((1, 17, 8, 8), "aBcd16b", "float32")    8192, the padding of blocks included

Nothing else derives bytes from a shape.  Where a library asks for more than that, its answer counts
(``Description``), and the program's values carry it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .layout.layout import parse_layout

_NAME = re.compile(r"(?:bool|[a-z]+(?P<bits>\d+)(?:_[a-z0-9]+)?)(?:x(?P<lanes>\d+))?")


@functools.lru_cache(maxsize=256)
def item_bytes(dtype: str) -> int:
    """Whole bytes of one element; ValueError for what names no type of known width."""
    match = _NAME.fullmatch(dtype)
    if match is None:
        raise ValueError(f"element type {dtype!r}: expected a name such as float32, bfloat16, int8 or bool")
    bits: int = int(match["bits"] or 8) * int(match["lanes"] or 1)
    return -(-bits // 8)


def stored_bytes(shape: Sequence[Any], layout: str, dtype: str) -> int:
    """Bytes of a tensor stored in a physical layout, padding included; its shape is of numbers."""
    return item_bytes(dtype) * parse_layout(layout).elements(shape)


def dense_bytes(shape: Sequence[Any], dtype: str) -> int:
    """Bytes of a tensor's elements alone; its shape is of numbers."""
    count: int = math.prod(shape)
    return item_bytes(dtype) * count


def numpy_type(dtype: str) -> np.dtype[Any]:
    """numpy's type of this name, bfloat16 as ``ml_dtypes`` adds it; TypeError where there is none."""
    if dtype == "bfloat16":
        import ml_dtypes  # numpy has no such type of its own

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(dtype)
