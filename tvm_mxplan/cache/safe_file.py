"""Opening a cache file that someone else could have put there: a plain file, of this user or of root."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from .container import Container, UnusableCache


def open_container(path: Path) -> Container:
    """The file mapped privately, its header checked; UnusableCache for anything that is not ours.

    A reader keeps what it mapped when the file is replaced or removed meanwhile.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise UnusableCache("no such file") from None
    except OSError as error:
        if path.is_symlink():
            raise UnusableCache("a link, not a plain file") from None
        raise UnusableCache(f"cannot be read ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableCache("not a plain file")
        check_owner(status)
        if not status.st_size:
            raise UnusableCache("an empty file")
        # Copy on write: TVM takes only memory that could be written to.
        mapped = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY))
        return Container(mapped, status.st_mtime_ns)
    except OSError as error:
        raise UnusableCache(f"cannot be read ({error.strerror})") from None
    finally:
        os.close(descriptor)


def check_owner(status: os.stat_result) -> None:
    """UnusableCache unless this user or root owns it, and nobody else may write to it."""
    if status.st_uid not in (os.geteuid(), 0):
        raise UnusableCache(f"owned by user {status.st_uid}, not by {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnusableCache("others may write to it")
