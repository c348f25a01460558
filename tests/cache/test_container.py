"""The cache file format: what is written is read, anything else is refused with a reason."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_mxplan.cache import container
from tvm_mxplan.cache.container import MAGIC, Container, Entry, UnusableCache, write
from tvm_mxplan.cache.safe_file import open_container

FINGERPRINT = hashlib.sha256(b"a model").hexdigest()
ENTRIES = [
    Entry("json", "artifact", b'{"a":1}'),
    Entry("bytes", "empty", b""),
    Entry("constant", "0", bytes(range(256)) * 20),
    Entry("bytes", "after", b"x" * 65),
]


def written(folder: Path, entries: list[Entry] = ENTRIES, facts: dict[str, object] | None = None) -> bytes:
    path = folder / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write(descriptor, FINGERPRINT, facts or {"target": ["llvm"]}, entries)
    finally:
        os.close(descriptor)
    return path.read_bytes()


def with_fields(header: bytes, **fields: object) -> bytes:
    changed = {**json.loads(header), **fields}
    return json.dumps(changed, sort_keys=True, separators=(",", ":")).encode()


def with_row(header: bytes, **fields: object) -> bytes:
    """The header with its last row changed."""
    *rows, last = json.loads(header)["entries"]
    return with_fields(header, entries=[*rows, {**last, **fields}])


def with_header(change, data: bytes) -> bytes:
    """The file with its header changed and digests made right again; entries stay where they are."""
    (length,) = struct.unpack_from("<I", data, 12)
    header = change(data[48 : 48 + length])
    prefix = data[:12] + struct.pack("<I", len(header))
    return prefix + hashlib.sha256(prefix + header).digest() + header + data[48 + length :]


def refused(data: bytes) -> str:
    with pytest.raises(UnusableCache) as error:
        Container(data).verify()
    return str(error.value)


def test_digests_that_are_known_are_not_taken_again(tmp_path, monkeypatch):
    """The file is the same."""
    hashed: list[bytes] = []
    digests = container.content_digests
    monkeypatch.setattr(
        container, "content_digests", lambda buffers: hashed.extend(map(bytes, buffers)) or digests(buffers)
    )
    plain = written(tmp_path)
    assert hashed == [entry.payload for entry in ENTRIES]
    hashed.clear()
    known = [Entry(e.kind, e.name, e.payload, digests([e.payload])[0]) for e in ENTRIES]
    assert written(tmp_path, [*known[:1], ENTRIES[1], *known[2:]]) == plain
    assert hashed == [ENTRIES[1].payload]


def test_reads_what_was_written(tmp_path):
    container = Container(written(tmp_path))
    container.verify()
    assert container.fingerprint == FINGERPRINT
    assert container.facts == {"target": ["llvm"]}
    for entry, info in zip(ENTRIES, container.entries, strict=True):
        assert bytes(container.read(entry.kind, entry.name)) == entry.payload
        assert info.offset % (4096 if info.length >= 4096 else 64) == 0
    with pytest.raises(UnusableCache, match="no entry bytes/other"):
        container.read("bytes", "other")


def test_a_file_without_entries(tmp_path):
    Container(written(tmp_path, [])).verify()


def test_the_same_content_is_the_same_file(tmp_path):
    facts = {"b": 1, "a": {"d": [1.5, None], "c": True}}
    assert written(tmp_path, facts=facts) == written(tmp_path, facts=dict(reversed(facts.items())))


def test_every_flipped_byte_is_found(tmp_path):
    data = bytearray(written(tmp_path))
    for at in range(len(data)):
        data[at] ^= 0x40
        assert refused(bytes(data)), at
        data[at] ^= 0x40
    Container(bytes(data)).verify()


def test_every_truncation_is_found(tmp_path):
    data = written(tmp_path)
    for end in range(len(data)):
        assert "truncated" in refused(data[:end]) or end == 0, end
    assert refused(b"") == "an empty file"
    assert refused(data + b"\0") == "1 bytes after the last entry"


def test_swapped_entries_are_found(tmp_path):
    entries = [Entry("constant", "0", b"a" * 100), Entry("constant", "1", b"b" * 100)]
    data = bytearray(written(tmp_path, entries))
    first, second = (info.offset for info in Container(data).entries)
    data[first : first + 100], data[second : second + 100] = (
        data[second : second + 100],
        data[first : first + 100],
    )
    assert "constant/0 does not match its digest" in refused(bytes(data))


def test_trusted_entries_are_hashed_again_where_the_file_was_written_to(tmp_path):
    written(tmp_path, [*ENTRIES, Entry("weights", "0", b"w" * 1000)])
    path = tmp_path / "file"
    path.chmod(0o600)
    sealed = path.stat()
    at = open_container(path).entries[-1].offset

    def damage(offset: int) -> None:
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(b"?")

    damage(at)
    trust = lambda container: container.check(trusted=("weights",))  # noqa: E731
    for method in (trust, Container.verify, lambda container: container.read("weights", "0")):
        with pytest.raises(UnusableCache, match="weights/0 does not match its digest"):
            method(open_container(path))
    os.utime(path, ns=(sealed.st_atime_ns, sealed.st_mtime_ns))  # as if nobody had
    trust(open_container(path))
    for method in (Container.check, Container.verify):
        with pytest.raises(UnusableCache, match="weights/0 does not match its digest"):
            method(open_container(path))
    damage(open_container(path).entries[2].offset)
    os.utime(path, ns=(sealed.st_atime_ns, sealed.st_mtime_ns))
    with pytest.raises(UnusableCache, match="constant/0 does not match its digest"):
        trust(open_container(path))


def test_a_copy_of_a_file_is_hashed(tmp_path, monkeypatch):
    written(tmp_path, [Entry("weights", "0", b"w" * 1000), Entry("json", "0", b"{}")])
    path = tmp_path / "file"
    hashed: list[int] = []
    real = container.content_digests
    monkeypatch.setattr(
        container, "content_digests", lambda buffers: hashed.append(sum(map(len, buffers))) or real(buffers)
    )
    open_container(path).check(trusted=("weights",))
    (tmp_path / "copy").write_bytes(path.read_bytes())
    open_container(tmp_path / "copy").check(trusted=("weights",))
    assert hashed == [2, 1002]


def test_entries_are_checked_only_when_they_are_read(tmp_path):
    data = bytearray(written(tmp_path))
    info = Container(data).entries[2]
    data[info.offset + 7] ^= 1
    container = Container(data)
    assert bytes(container.read("json", "artifact")) == ENTRIES[0].payload
    with pytest.raises(UnusableCache, match="constant/0 does not match its digest"):
        container.read("constant", "0")


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda header: header + b" ", "not in canonical form"),
        (lambda header: header[:-1], "no JSON"),
        (lambda header: b"\xff" + header[1:], "no JSON"),
        (lambda header: b"[" * 100_000, "no JSON"),
        (lambda header: b"{}", "other fields"),
        (lambda header: b"[]", "other fields"),
        (lambda header: header.replace(b'"name":"0"', b'"name":"/"'), "other types"),
        (lambda header: header.replace(b'"length":65', b'"length":-5'), "other types"),
        (lambda header: header.replace(b'"length":65', b'"length":1e'), "no JSON"),
        (lambda header: header.replace(b'"length":65', b'"length":99'), "truncated inside entry bytes/after"),
        (lambda header: header.replace(b'"name":"after"', b'"name":"empty"'), "two entries of one name"),
        (lambda header: header.replace(FINGERPRINT.encode(), b"A" * 64), "no SHA-256"),
        (lambda header: with_fields(header, entries={}), "other types"),
        (lambda header: with_fields(header, entries=5), "other types"),
        (lambda header: with_fields(header, entries=None), "other types"),
        (lambda header: with_fields(header, entries=["row"]), "other types"),
        (lambda header: with_fields(header, facts=[]), "other types"),
        (lambda header: with_fields(header, facts={"x": float("nan")}), "no JSON"),
        (lambda header: with_fields(header, fingerprint=7), "no SHA-256"),
        (lambda header: with_fields(header, more=1), "other fields"),
        (lambda header: with_row(header, kind=1), "other types"),
        (lambda header: with_row(header, name=1), "other types"),
        (lambda header: with_row(header, sha256=1), "other types"),
        (lambda header: with_row(header, sha256="A" * 64), "other types"),
        (lambda header: with_row(header, kind=""), "other types"),
        (lambda header: with_row(header, length=True), "other types"),
        (lambda header: with_row(header, length=1.0), "other types"),
        (lambda header: with_row(header, more=1), "other types"),
    ],
)
def test_a_header_that_was_made_to_fit_its_digest(tmp_path, change, reason):
    data = written(tmp_path)
    assert with_header(lambda header: header, data) == data
    assert reason in refused(with_header(change, data))


def test_another_version(tmp_path):
    data = written(tmp_path)
    assert "version 7 of the format, this build reads 1" in refused(
        data[:8] + struct.pack("<I", 7) + data[12:]
    )


@pytest.mark.parametrize(
    "data", [pickle.dumps({"a": 1}), b"\x7fELF", b"M", json.dumps({}).encode(), bytes(5000)]
)
def test_what_is_no_cache_file(data):
    assert refused(data) == "not a cache file of tvm_mxplan"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 2**32 - 1), st.booleans())
def test_any_bytes_are_refused_without_a_crash(rest, length, honest):
    """Bytes behind a right beginning, with a right digest or not."""
    prefix = MAGIC + struct.pack("<II", 1, len(rest) if honest else length)
    digest = hashlib.sha256(prefix + rest).digest() if honest else rest[:32]
    assert refused(prefix + digest + rest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([FINGERPRINT, "json"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(JSON, JSON, JSON, st.binary(max_size=100))
def test_any_header_is_read_or_refused(entries, facts, fingerprint, rest):
    fields = {"entries": entries, "facts": facts, "fingerprint": fingerprint}
    header = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    prefix = MAGIC + struct.pack("<II", 1, len(header))
    data = prefix + hashlib.sha256(prefix + header).digest() + header + rest
    right = entries == [] and isinstance(facts, dict) and fingerprint == FINGERPRINT and not rest
    if right:
        Container(data).verify()
    else:
        assert refused(data)
