"""A file that grows by whole lines, safe against other processes and kills.

Whoever writes holds a lock on the file itself.  A line is written by one call; what a killed process left of
one is damage that readers skip.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """The file open to be appended to, and locked; not one that somebody has replaced meanwhile."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def append(path: Path, lines: str, header: str, *, anew: bool = False) -> None:
    """Add whole lines, below ``header`` where the file is new; OSError where that cannot be.

    Parameters
    ----------
    anew : what is in a file that begins with no such header is removed first.
    """
    with locked(path) as descriptor:
        if anew and os.pread(descriptor, len(header.encode()), 0) != header.encode():
            os.ftruncate(descriptor, 0)
        size = os.fstat(descriptor).st_size
        if not size:
            lines = header + lines
        elif os.pread(descriptor, 1, size - 1) != b"\n":
            lines = "\n" + lines
        _write(descriptor, lines.encode())


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
