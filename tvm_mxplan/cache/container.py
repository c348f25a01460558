"""One cache file: a header and entries with digests; it does not know what the entries mean.

    magic:8 version:u32 header_length:u32 digest:32   the digest covers the 16 bytes before it and the header
    header        canonical JSON: {"entries": [...], "facts": {...}, "fingerprint": "..."}
    zeros, entry  each at the next multiple of 4096, or of 64 where it is shorter than 4096 bytes

An entry in the header is {"kind", "length", "name", "sha256"}.  Places follow from lengths, so none can
overlap; each ``sha256`` is a `content_digest`, so the digest over the header covers the whole file but its
padding, which must be zeros.  Anything that ``write`` would not have written is an UnusableCache.

The last thing ``write`` does is to set the file's time of change to one that follows from its header.  A file
that still has that time has not been written to since: a reader may take large entries, weights, as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.fingerprint import Buffer, content_digest, content_digests

MAGIC = b"\x89MXPLAN\n"
VERSION = 1
_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32
_HEADER_AT = _PREFIX.size + _DIGEST_BYTES
_PAGE, _LINE = 4096, 64
_SECOND = 1_000_000_000
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_HEX = re.compile(r"[0-9a-f]{64}")


class UnusableCache(Exception):
    """A cache file or folder that cannot be used; the message is the reason.  Never fails a compilation."""


@dataclass(frozen=True)
class Entry:
    """Bytes to write, under a kind and a name that together are unique in the file.

    ``digest`` is the payload's `content_digest` where it is known already.
    """

    kind: str
    name: str
    payload: Buffer
    digest: bytes | None = None


@dataclass(frozen=True)
class EntryInfo:
    """The place of an entry in the file, and its digest in hexadecimal."""

    kind: str
    name: str
    offset: int
    length: int
    sha256: str


def write(descriptor: int, fingerprint: str, facts: Mapping[str, Any], entries: Sequence[Entry]) -> None:
    """Write a whole file; ``facts`` is JSON that says in words what the fingerprint covers."""
    payloads = [memoryview(entry.payload).cast("B") for entry in entries]
    header = _written_header(fingerprint, facts, entries, payloads)
    _write_at(descriptor, 0, memoryview(header))
    at = len(header)
    for payload in payloads:
        start = _start(at, len(payload))
        _write_at(descriptor, start, payload)
        at = start + len(payload)
    os.ftruncate(descriptor, at)  # what was not written is zeros, also behind the last byte
    os.fsync(descriptor)
    now = time.time_ns()
    with contextlib.suppress(OSError):  # without it, all is hashed each time
        os.utime(descriptor, ns=(now, (now // _SECOND - 1) * _SECOND + _seal(header)))


def _written_header(
    fingerprint: str, facts: Mapping[str, Any], entries: Sequence[Entry], payloads: Sequence[memoryview]
) -> bytes:
    """The file up to the end of its header."""
    unknown = [n for n, entry in enumerate(entries) if entry.digest is None]
    found = dict(zip(unknown, content_digests([payloads[n] for n in unknown]), strict=True))
    rows = [
        {
            "kind": entry.kind,
            "length": len(payloads[n]),
            "name": entry.name,
            "sha256": (entry.digest or found[n]).hex(),
        }
        for n, entry in enumerate(entries)
    ]
    header = _canonical({"entries": rows, "facts": facts, "fingerprint": fingerprint})
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header))
    return prefix + hashlib.sha256(prefix + header).digest() + header


def _write_at(descriptor: int, offset: int, data: memoryview) -> None:
    while len(data):
        written = os.pwrite(descriptor, data, offset)
        offset, data = offset + written, data[written:]


class Container:
    """A cache file in memory or mapped: the header is checked at once, each entry when it is first read.

    ``changed`` is the file's time of change in nanoseconds, if it has one.

    Raises
    ------
    UnusableCache : from here and from every method, with the reason.
    """

    def __init__(self, data: Buffer, changed: int | None = None) -> None:
        self._data = memoryview(data).cast("B")
        header = _header(self._data)
        self.fingerprint, self.facts, rows = _fields(header)
        self._body_at = _HEADER_AT + len(header)
        self.entries = _places(rows, self._body_at, len(self._data))
        self._by_key = {(entry.kind, entry.name): entry for entry in self.entries}
        if len(self._by_key) != len(self.entries):
            raise UnusableCache("two entries of one name")
        self._checked: set[EntryInfo] = set()
        self._untouched = changed is not None and changed % _SECOND == _seal(self._data)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._by_key

    def read(self, kind: str, name: str) -> memoryview:
        """The bytes of an entry, not copied; its digest is checked the first time."""
        entry = self._by_key.get((kind, name))
        if entry is None:
            raise UnusableCache(f"no entry {kind}/{name}")
        payload = self._payload(entry)
        if entry not in self._checked:
            self._check(entry, content_digest(payload))
        return payload

    def check(self, trusted: Collection[str] = ()) -> None:
        """Check what was not checked yet, and the zeros between entries.

        Entries of the ``trusted`` kinds count as they are if nobody has written to the file.
        """
        if self._untouched:
            self._checked.update(entry for entry in self.entries if entry.kind in trusted)
        at = self._body_at
        for entry in self.entries:
            if bytes(self._data[at : entry.offset]).strip(b"\0"):
                raise UnusableCache(f"bytes between entries, before {entry.kind}/{entry.name}")
            at = entry.offset + entry.length
        entries = [entry for entry in self.entries if entry not in self._checked]
        digests = content_digests([self._payload(entry) for entry in entries])
        for entry, digest in zip(entries, digests, strict=True):
            self._check(entry, digest)

    def verify(self) -> None:
        """Check every byte, whatever the file's time of change says."""
        self._checked.clear()
        self.check()

    def _payload(self, entry: EntryInfo) -> memoryview:
        return self._data[entry.offset : entry.offset + entry.length]

    def _check(self, entry: EntryInfo, digest: bytes) -> None:
        if digest.hex() != entry.sha256:
            raise UnusableCache(f"entry {entry.kind}/{entry.name} does not match its digest")
        self._checked.add(entry)


def _seal(header: Buffer) -> int:
    """Nanoseconds within a second, from the digest of a header."""
    return int.from_bytes(bytes(header[_PREFIX.size : _HEADER_AT])[:8], "little") % _SECOND


def _header(data: memoryview) -> bytes:
    """The header's bytes, after the digest over them was found right."""
    if not len(data):
        raise UnusableCache("an empty file")
    if bytes(data[: len(MAGIC)]) != MAGIC[: len(data)]:
        raise UnusableCache("not a cache file of tvm_mxplan")
    if len(data) < _HEADER_AT:
        raise UnusableCache("truncated before its header")
    prefix = bytes(data[: _PREFIX.size])
    _, version, length = _PREFIX.unpack(prefix)
    if version != VERSION:
        raise UnusableCache(f"version {version} of the format, this build reads {VERSION}")
    if length > len(data) - _HEADER_AT:
        raise UnusableCache("truncated inside its header")
    header = bytes(data[_HEADER_AT : _HEADER_AT + length])
    if hashlib.sha256(prefix + header).digest() != bytes(data[_PREFIX.size : _HEADER_AT]):
        raise UnusableCache("the header does not match its digest")
    return header


def _fields(header: bytes) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Fingerprint, facts and rows of entries; the header must be exactly what ``write`` writes."""
    try:
        fields = json.loads(header)
        canonical = _canonical(fields)
    except (ValueError, RecursionError):
        raise UnusableCache("the header is no JSON") from None
    if canonical != header:
        raise UnusableCache("the header is not in canonical form")
    if not isinstance(fields, dict) or set(fields) != {"entries", "facts", "fingerprint"}:
        raise UnusableCache("the header has other fields than expected")
    fingerprint, facts, rows = fields["fingerprint"], fields["facts"], fields["entries"]
    if not isinstance(fingerprint, str) or not _HEX.fullmatch(fingerprint):
        raise UnusableCache("the fingerprint is no SHA-256")
    if not isinstance(facts, dict) or not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise UnusableCache("the header has fields of other types than expected")
    return fingerprint, facts, rows


def _is_row(row: object) -> bool:
    if not isinstance(row, dict) or set(row) != {"kind", "length", "name", "sha256"}:
        return False
    texts = isinstance(row["kind"], str) and isinstance(row["name"], str) and isinstance(row["sha256"], str)
    number = isinstance(row["length"], int) and not isinstance(row["length"], bool) and row["length"] >= 0
    return bool(
        texts
        and number
        and _WORD.fullmatch(row["kind"])
        and _WORD.fullmatch(row["name"])
        and _HEX.fullmatch(row["sha256"])
    )


def _places(rows: list[dict[str, Any]], at: int, size: int) -> tuple[EntryInfo, ...]:
    """The entries with the places that follow from their lengths; they must fill the file."""
    entries = []
    for row in rows:
        start = _start(at, row["length"])
        at = start + row["length"]
        if at > size:
            raise UnusableCache(f"truncated inside entry {row['kind']}/{row['name']}")
        entries.append(EntryInfo(row["kind"], row["name"], start, row["length"], row["sha256"]))
    if at != size:
        raise UnusableCache(f"{size - at} bytes after the last entry")
    return tuple(entries)


def _start(at: int, length: int) -> int:
    alignment = _PAGE if length >= _PAGE else _LINE
    return -(-at // alignment) * alignment


def _canonical(fields: Any) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
