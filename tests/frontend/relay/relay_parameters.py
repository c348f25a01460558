"""Parameters as TVM's Relay wrote them to files."""

from __future__ import annotations

import struct

import numpy as np

TENSOR_MAGIC, LIST_MAGIC = 0xDD5E40F096B4A13F, 0xF7E58D4F05049CB7
_CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


def tensor_bytes(value: np.ndarray) -> bytes:
    """A tensor in TVM's binary form."""
    bits = 1 if value.dtype == bool else 8 * value.dtype.itemsize
    head = struct.pack("<QQiiiBBH", TENSOR_MAGIC, 0, 1, 0, value.ndim, _CODES[value.dtype.kind], bits, 1)
    shape = struct.pack(f"<{value.ndim}q", *value.shape)
    return head + shape + struct.pack("<q", value.nbytes) + value.tobytes()


def parameter_bytes(values: dict[str, np.ndarray]) -> bytes:
    """The bytes that ``relay.save_param_dict`` wrote."""
    names = b"".join(struct.pack("<Q", len(name.encode())) + name.encode() for name in values)
    head = struct.pack("<QQQ", LIST_MAGIC, 0, len(values)) + names + struct.pack("<Q", len(values))
    return head + b"".join(map(tensor_bytes, values.values()))
