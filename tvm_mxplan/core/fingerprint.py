"""Digests over structured values and over large buffers: what a cache on disk is asked by.

A ``Fingerprint`` takes named values one by one.  Each is written with its type and length before it, so that
no two sequences of values are one text.  Buffers enter by their ``content_digests``: SHA-256 over the
SHA-256 of each piece, so that large ones are hashed by several threads and never copied.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from mmap import mmap
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
Plain: TypeAlias = bool | int | float | str | bytes | Sequence["Plain"] | Mapping[str, "Plain"] | None

PIECE = 4 << 20
_WORTH_THREADS = 16 << 20


class Fingerprint:
    """A digest that grows: ``add`` values, then ask for ``hexdigest``."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, name: str, value: Plain) -> None:
        """Add a value; floats enter by their bits, mappings by their sorted keys.

        Raises
        ------
        TypeError : a type that has no one way to be written.
        """
        self._hash.update(_frame(b"=", name.encode()))
        for chunk in _chunks(value):
            self._hash.update(chunk)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def content_digest(buffer: Buffer) -> bytes:
    """The digest of one buffer, 32 bytes; see :func:`content_digests`."""
    return content_digests([buffer])[0]


def content_digests(buffers: Sequence[Buffer]) -> list[bytes]:
    """For each buffer the SHA-256 of its pieces' SHA-256, pieces of 4 MiB, hashed in parallel."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    pieces = [[view[at : at + PIECE] for at in range(0, len(view), PIECE)] for view in views]
    flat = [piece for group in pieces for piece in group]
    if sum(len(view) for view in views) < _WORTH_THREADS:
        digests = iter([_sha256(piece) for piece in flat])
    else:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            digests = iter(list(pool.map(_sha256, flat)))
    return [_sha256(b"".join(next(digests) for _ in group)) for group in pieces]


def _sha256(data: Buffer) -> bytes:
    return hashlib.sha256(data).digest()


def _frame(tag: bytes, data: bytes) -> bytes:
    return tag + struct.pack("<Q", len(data)) + data


def _chunks(value: Plain) -> Iterator[bytes]:
    if value is None:
        yield _frame(b"n", b"")
    elif isinstance(value, bool):
        yield _frame(b"b", bytes([value]))
    elif isinstance(value, int):
        yield _frame(b"i", str(value).encode())
    elif isinstance(value, float):
        yield _frame(b"f", struct.pack("<d", value))
    elif isinstance(value, str):
        yield _frame(b"s", value.encode())
    elif isinstance(value, bytes):
        yield _frame(b"y", value)
    elif isinstance(value, Mapping):
        yield b"{" + struct.pack("<Q", len(value))
        for key in sorted(value):
            yield _frame(b"s", key.encode())
            yield from _chunks(value[key])
    elif isinstance(value, Sequence):
        yield b"[" + struct.pack("<Q", len(value))
        for item in value:
            yield from _chunks(item)
    else:
        raise TypeError(f"a {type(value).__name__} has no canonical form")
