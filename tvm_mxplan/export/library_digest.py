"""A digest at the end of an exported library, checked before TVM sees the file.

    library  "mxplan-digest-1\\n"  bytes of the library:u64  content digest of the library:32

The dynamic loader reads nothing behind the last segment, so the file stays a stock TVM library.  TVM's own
loaders believe what they read and crash on a flipped bit.  A library without this end is TVM's own work, or
was stripped: nothing is known of it, and nothing is said.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from ..core.fingerprint import content_digest
from ..errors import InvalidInputError

_MAGIC = b"mxplan-digest-1\n"
_END = struct.Struct("<16sQ32s")


def append_digest(path: Path) -> None:
    """Write the digest of a finished library behind it."""
    with path.open("r+b") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = _END.pack(_MAGIC, len(data), content_digest(data))
        file.seek(0, 2)
        file.write(end)


def check_digest(path: Path) -> None:
    """Raise InvalidInputError if the library is not what its digest says."""
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if len(data) < _END.size:
        return
    magic, size, digest = _END.unpack(data[-_END.size :])
    if magic != _MAGIC:
        return
    library = data[: -_END.size]
    if size != len(library) or content_digest(library) != digest:
        raise InvalidInputError(
            f"{path}: damaged, its content does not match the digest it was written with; "
            "copy it again, or compile the model again"
        )
