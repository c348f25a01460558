"""Files that grow by whole lines: headers, damage, locks, and nothing left open."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tvm_mxplan.cache import locked_file
from tvm_mxplan.cache.locked_file import append, locked

HEADER = "records 1\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines"


def test_a_new_file_begins_with_its_header(path: Path) -> None:
    append(path, "one\n", HEADER)
    append(path, "two\nthree\n", HEADER)
    assert path.read_text() == "records 1\none\ntwo\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("left", "expected"), [("", HEADER), ("records 1\nhal", "records 1\nhal\n"), ("a\n", "a\n")]
)
def test_what_a_killed_process_left_is_a_line_of_its_own(path: Path, left: str, expected: str) -> None:
    path.write_text(left)
    append(path, "one\n", HEADER)
    assert path.read_text() == f"{expected}one\n"


@pytest.mark.parametrize("left", ["records 0\nold\n", "records 1", "x"])
def test_a_file_of_another_header_begins_anew(path: Path, left: str) -> None:
    path.write_text(left)
    append(path, "one\n", HEADER, anew=True)
    append(path, "two\n", HEADER, anew=True)
    assert path.read_text() == "records 1\none\ntwo\n"


def test_letters_of_several_bytes_are_written_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system takes a few bytes at a time."""
    write = os.write
    monkeypatch.setattr(locked_file.os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    append(path, "äöß\n" * 5, HEADER)
    assert path.read_text() == HEADER + "äöß\n" * 5


def is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_one_writer_at_a_time(path: Path) -> None:
    with locked(path) as descriptor:
        assert is_locked(path)
        os.write(descriptor, b"mine\n")
    assert not is_locked(path)
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    assert not is_locked(path)


def test_nothing_is_left_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        append(path, "line\n", HEADER)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_was_replaced_meanwhile_is_opened_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    path.write_text("old\n")
    flock, left = fcntl.flock, [1]

    def replaced(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if left:
            left.pop()
            path.unlink()
            if not gone:
                path.write_text("new\n")

    monkeypatch.setattr(locked_file.fcntl, "flock", replaced)
    before = len(os.listdir("/proc/self/fd"))
    append(path, "line\n", HEADER)
    assert path.read_text() == ("records 1\nline\n" if gone else "new\nline\n")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        append(path, "line\n", HEADER)
    assert not (tmp_path / "target").exists()
