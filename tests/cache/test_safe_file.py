"""Files that are opened for reading: nothing is left open, and what was mapped stays as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tvm_mxplan.cache import safe_file
from tvm_mxplan.cache.container import Entry, UnusableCache
from tvm_mxplan.cache.safe_file import open_container
from tvm_mxplan.cache.store import Store

KEY = "a" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = Store(tmp_path / "store", 1 << 20)
    store.save(KEY, {}, [Entry("constant", "0", b"x" * 5000)])
    return store.path_of(KEY)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_file_that_is_read_is_not_held_open(path: Path) -> None:
    before = open_files()
    kept = [open_container(path) for _ in range(8)]
    assert open_files() <= before + 8  # Python's mmap holds a descriptor of its own
    del kept
    assert open_files() == before


@pytest.mark.parametrize("spoilt", ["missing", "folder", "link", "fifo", "empty", "writable", "other"])
def test_a_file_that_is_refused_is_closed(path: Path, spoilt: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if spoilt == "folder":
        path.mkdir()
    elif spoilt == "link":
        path.symlink_to("/dev/null")
    elif spoilt == "fifo":
        os.mkfifo(path)
    elif spoilt != "missing":
        path.write_bytes({"empty": b"", "other": b"other"}.get(spoilt, content))
    if spoilt == "writable":
        path.chmod(0o666)
    before = open_files()
    for _ in range(3):
        with pytest.raises(UnusableCache):
            open_container(path)
    assert open_files() == before


@pytest.mark.parametrize(
    ("mode", "fine"), [(0o600, True), (0o644, True), (0o640, True), (0o620, False), (0o602, False)]
)
def test_nobody_else_may_write(path: Path, mode: int, fine: bool) -> None:
    path.chmod(mode)
    if fine:
        assert bytes(open_container(path).read("constant", "0")) == b"x" * 5000
    else:
        with pytest.raises(UnusableCache, match="others may write to it"):
            open_container(path)


def test_what_was_opened_stays_when_the_file_is_replaced(path: Path) -> None:
    container = open_container(path)
    path.unlink()
    path.write_bytes(b"something else")
    assert bytes(container.read("constant", "0")) == b"x" * 5000


def test_writing_to_what_was_mapped_does_not_reach_the_file(path: Path) -> None:
    content = path.read_bytes()
    mapped = open_container(path).read("constant", "0")
    assert not mapped.readonly
    mapped[:3] = b"abc"
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("owner", "user", "fine"), [(7, 7, True), (0, 7, True), (0, 0, True), (8, 7, False), (7, 0, False)]
)
def test_files_are_of_this_user_or_of_root(
    monkeypatch: pytest.MonkeyPatch, path: Path, owner: int, user: int, fine: bool
) -> None:
    monkeypatch.setattr(safe_file.os, "geteuid", lambda: user)
    fields = list(os.stat(path))
    fields[4] = owner
    if fine:
        safe_file.check_owner(os.stat_result(fields))
    else:
        with pytest.raises(UnusableCache, match=f"owned by user {owner}, not by {user}"):
            safe_file.check_owner(os.stat_result(fields))
