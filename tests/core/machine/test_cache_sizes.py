"""Sizes of caches out of files as Linux has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvm_mxplan.core.machine.caches import cache_sizes


def write(folder: Path, rows: list[tuple[str, str, str, str]]) -> Path:
    for at, row in enumerate(rows):
        index = folder / f"index{at}"
        index.mkdir()
        for name, text in zip(("type", "level", "size", "shared_cpu_list"), row, strict=True):
            (index / name).write_text(text + "\n")
    return folder


@pytest.mark.parametrize(
    ("threads", "sizes"),
    [
        (1, (32 << 10, 1 << 20, 32 << 20)),
        (2, (32 << 10, 1 << 20, 32 << 20)),
        (3, (64 << 10, 2 << 20, 32 << 20)),
        (16, (256 << 10, 8 << 20, 64 << 20)),
    ],
)
def test_threads_have_as_many_caches_as_they_need(
    tmp_path: Path, threads: int, sizes: tuple[int, ...]
) -> None:
    rows = [
        ("Data", "1", "32K", "0,8"),
        ("Instruction", "1", "64K", "0,8"),
        ("Unified", "2", "1024K", "0,8"),
        ("Unified", "3", "32M", "0-7"),
    ]
    assert cache_sizes(threads, write(tmp_path, rows)) == sizes


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    rows = [("Data", "one", "32K", "0"), ("Unified", "2", "many", "0"), ("Unified", "3", "8M", "")]
    assert cache_sizes(2, write(tmp_path, rows)) == (16 << 20,)


def test_a_level_that_is_no_larger_than_a_nearer_one_is_none(tmp_path: Path) -> None:
    """Of units there are four; a list may name single processors and ranges."""
    rows = [
        ("Data", "1", "512", "0-1,4-5"),
        ("Unified", "2", "1K", "0-7"),
        ("Unified", "3", "1024", "0-15"),
        ("Unified", "4", "1G", "0"),
    ]
    assert cache_sizes(5, write(tmp_path, rows)) == (1024, 5 << 30)


def test_usual_sizes_where_nothing_is_said(tmp_path: Path) -> None:
    assert cache_sizes(2, tmp_path) == (64 << 10, 2 << 20)
