"""Looking after the cache's folder: what is listed, which file a name means, what is damaged."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tvm_mxplan import InvalidInputError
from tvm_mxplan.cache import maintenance
from tvm_mxplan.cache.container import Entry
from tvm_mxplan.cache.store import Store


@pytest.fixture
def files(cache_folder: Path) -> list[Path]:
    """Two files of different sizes in the folder that the environment names."""
    store = Store(cache_folder, 1 << 30)
    return [
        store.save(letter * 64, {"made": letter}, [Entry("text", "t", letter.encode() * size)])
        for letter, size in (("a", 100), ("b", 5000))
    ]


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_a_line_for_each_file_with_the_time_of_its_use(files: list[Path]) -> None:
    uses = {path.name: seconds for path, seconds in zip(files, (1_500_000_000, 1_600_000_000), strict=True)}
    for path in files:
        os.utime(path, (uses[path.name], 1_400_000_000))
    *lines, total = maintenance.listing().splitlines()
    sizes = {path.name: path.stat().st_size for path in files}
    assert len(lines) == 2
    for line in lines:
        name, size, used = re.fullmatch(r"(\S+) +([\d,]+)  used (.*)", line).groups()  # type: ignore[union-attr]
        assert int(size.replace(",", "")) == sizes[name]
        assert used == time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(uses[name]))
    assert f"2 file(s), {sum(sizes.values()):,} of" in total


def test_a_file_by_its_name_the_beginning_of_it_or_its_path(files: list[Path]) -> None:
    first, _ = files
    for name in (first.name, "aa", str(first)):
        assert maintenance.path_of(name) == first
    with pytest.raises(InvalidInputError, match="no file begins with 'c'"):
        maintenance.path_of("c")
    with pytest.raises(InvalidInputError, match="2 files begin with ''"):
        maintenance.path_of("")
    assert maintenance.path_of("elsewhere/c") == Path("elsewhere/c")


def test_what_a_file_holds(files: list[Path]) -> None:
    text = maintenance.description(files[1])
    assert (
        f"fingerprint {'b' * 64}" in text and '"made": "b"' in text and "5,000" in text and "text/t" in text
    )
    files[1].write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match="a compilation will write it anew"):
        maintenance.description(files[1])


def test_the_files_that_are_asked_for_are_verified(files: list[Path]) -> None:
    assert maintenance.verified([]).endswith("2 file(s) verified")
    spoil(files[1])
    assert maintenance.verified(files[:1]) == f"{files[0].name}: right\n1 file(s) verified"
    for paths, count in (([], 2), (files, 2), (files[1:], 1)):
        with pytest.raises(InvalidInputError, match=rf"1 of {count} file\(s\) damaged; .*{files[1].name}"):
            maintenance.verified(paths)


def test_files_are_removed_until_the_limit_holds(files: list[Path]) -> None:
    assert "0 file(s) removed, 0 bytes" in maintenance.pruned(None)
    size = files[0].stat().st_size
    assert f"1 file(s) removed, {size:,} bytes" in maintenance.pruned(files[1].stat().st_size)
    assert [path.exists() for path in files] == [False, True]
    assert "1 file(s) removed" in maintenance.pruned(0)
    assert not files[1].exists()
