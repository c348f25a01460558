"""A private folder of cache files: looked up by fingerprint, replaced whole, bounded in bytes.

    <first 16 digits of the fingerprint>.mxcache      a file; the whole fingerprint is inside
    .partial-*                                        being written, and locked by whoever writes it
    lock                                              held while files are renamed or removed

Readers take no lock: a file appears whole by a rename, and stays readable for who has it open.  Every failure
is an UnusableCache; what it means for a compilation is decided elsewhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .container import Container, Entry, UnusableCache, write
from .safe_file import check_owner, open_container

_SUFFIX = ".mxcache"
_NAME = re.compile(r"[0-9a-f]{16}\.mxcache")
_PARTIAL = ".partial-"
_LOCK = "lock"
_PATIENCE = 5.0


@dataclass(frozen=True)
class StoredFile:
    """One file of the store; ``used`` is when it was last hit or written, in seconds since 1970."""

    path: Path
    nbytes: int
    used: float


class Store:
    """A folder of cache files; nothing is created before something is saved.

    Parameters
    ----------
    folder : an absolute path.
    limit : bytes of all files; the least recently used ones go first.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def path_of(self, fingerprint: str) -> Path:
        return self.folder / f"{fingerprint[:16]}{_SUFFIX}"

    def find(self, fingerprint: str) -> Container:
        """The file for a fingerprint, its header checked; marks it as used."""
        self._check_folder()
        path = self.path_of(fingerprint)
        container = open_container(path)
        if container.fingerprint != fingerprint:
            raise UnusableCache("made for another model or other settings")
        with contextlib.suppress(OSError):  # a folder that is only read
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        return container

    def save(self, fingerprint: str, facts: Mapping[str, Any], entries: Sequence[Entry]) -> Path:
        """Write a file for a fingerprint in the place of any before it, then prune the others."""
        payload = sum(memoryview(entry.payload).nbytes for entry in entries)
        if payload > self.limit:
            raise UnusableCache(f"{payload:,} bytes are more than the cache may hold, {self.limit:,}")
        path = self.path_of(fingerprint)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_folder()
            with self._partial() as (name, descriptor):
                write(descriptor, fingerprint, facts, entries)
                with self._locked():
                    os.replace(name, path)
                    self._prune(self.limit, keep=path)
        except OSError as error:
            raise UnusableCache(f"cannot be written ({error.strerror or error})") from None
        return path

    def files(self) -> list[StoredFile]:
        """All files of the store, the most recently used first; [] where there is no folder."""
        try:
            self._check_folder()
        except UnusableCache:
            if not self.folder.exists():
                return []
            raise
        found = []
        for path in self.folder.iterdir():
            if _NAME.fullmatch(path.name):
                with contextlib.suppress(FileNotFoundError):  # another process may prune
                    status = path.lstat()
                    if not stat.S_ISDIR(status.st_mode):
                        used = max(status.st_atime, status.st_mtime)
                        found.append(StoredFile(path, status.st_size, used))
        return sorted(found, key=lambda file: (-file.used, file.path))

    def prune(self, limit: int) -> list[StoredFile]:
        """Remove the least recently used files until ``limit`` bytes are left; gives what went."""
        if not self.files() and not self.folder.exists():
            return []
        try:
            with self._locked():
                return self._prune(limit)
        except OSError as error:
            raise UnusableCache(f"cannot be pruned ({error.strerror or error})") from None

    def _prune(self, limit: int, keep: Path | None = None) -> list[StoredFile]:
        self._remove_abandoned()
        files = self.files()
        total = sum(file.nbytes for file in files)
        removed = []
        for file in reversed(files):
            if total <= limit:
                break
            if file.path != keep:
                file.path.unlink(missing_ok=True)
                total -= file.nbytes
                removed.append(file)
        return removed

    def _remove_abandoned(self) -> None:
        """Remove what processes that no longer live had begun to write."""
        for path in self.folder.glob(f"{_PARTIAL}*"):
            with contextlib.suppress(OSError):  # locked: its writer lives
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(descriptor)

    def _check_folder(self) -> None:
        try:
            status = self.folder.lstat()
        except FileNotFoundError:
            raise UnusableCache("no such file") from None
        except OSError as error:
            raise UnusableCache(f"{self.folder} cannot be read ({error.strerror})") from None
        if self.folder.is_symlink() or not self.folder.is_dir():
            raise UnusableCache(f"{self.folder} is no folder")
        try:
            check_owner(status)
        except UnusableCache as error:
            raise UnusableCache(f"{self.folder}: {error}") from None

    @contextmanager
    def _partial(self) -> Iterator[tuple[str, int]]:
        """A new file, locked as long as this process writes it, removed unless it was renamed."""
        with self._locked():  # nobody shall take it for abandoned before it is locked itself
            descriptor, name = tempfile.mkstemp(prefix=_PARTIAL, dir=self.folder)
            _try_lock(descriptor)
        try:
            yield name, descriptor
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name)
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The folder's lock; UnusableCache when another process holds it for seconds."""
        descriptor = os.open(
            self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            deadline = time.monotonic() + _PATIENCE
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise UnusableCache(f"another process holds the lock of {self.folder}")
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
