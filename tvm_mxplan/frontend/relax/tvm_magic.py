"""Numbers that TVM's binary files begin with."""

from __future__ import annotations

import struct

TENSOR_MAGIC = 0xDD5E40F096B4A13F
LIST_MAGIC = 0xF7E58D4F05049CB7
LIST_START = struct.pack("<Q", LIST_MAGIC)
"""The first bytes of a file of named tensors."""
