"""Files that ``save_cache`` wrote, spoilt: what ``load_cache`` must not use, and what it reads as sound."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tvm_mxplan.cache import container
from tvm_mxplan.cache.choices_file import load_cache, save_cache
from tvm_mxplan.cache.container import Entry
from tvm_mxplan.cache.safe_file import open_container

Change = Callable[[str, bytes], bytes]
"""The bytes in the place of an entry's, by its kind and its bytes."""


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


UNUSABLE: list[tuple[Callable[[Path], object], str]] = [
    (Path.unlink, "no such file"),
    (lambda path: path.write_bytes(b""), "an empty file"),
    (lambda path: (path.unlink(), path.mkdir()), "not a plain file"),
    (_link, "a link"),
    (lambda path: path.write_bytes(pickle.dumps(3)), "not a cache file"),
    (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "bytes"),
    (lambda path: path.write_bytes(path.read_bytes()[:-1]), "truncated"),
    (lambda path: path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2]), "truncated"),
    (_flip, "does not match its digest"),
]
"""Ways to spoil a file, and what the warning says of each."""


def rewrite(path: Path, facts: Mapping[str, Any] | None = None, change: Change | None = None) -> int:
    """Writes the file again, sound, with other facts or entries; returns how many entries are others."""
    saved, changed, entries = open_container(path), 0, []
    for info in saved.entries:
        data = bytes(saved.read(info.kind, info.name))
        other = data if change is None else change(info.kind, data)
        changed += other != data
        entries.append(Entry(info.kind, info.name, other))
    path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    container.write(descriptor, saved.fingerprint, dict(saved.facts if facts is None else facts), entries)
    os.close(descriptor)
    open_container(path).verify()
    return changed


def check_each_fact_is_needed(path: Path, type: str) -> None:
    """The file is read as it stands, and not without one of its facts, or without any."""
    facts = dict(open_container(path).facts)
    rewrite(path)
    assert load_cache(path, type) > 0
    assert facts
    for name in [*facts, None]:
        rewrite(path, {key: value for key, value in facts.items() if name is not None and key != name})
        with pytest.warns(RuntimeWarning, match=rf"{path.name}: not used, .* does not say for which"):
            assert load_cache(path, type) == 0, name


def check_unwritable_is_a_warning(folder: Path, type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is saved into a folder that is missing, or on a disk that is full."""
    with pytest.warns(RuntimeWarning, match="no cache was saved.*cannot be written"):
        assert save_cache(folder / "missing" / "c", type) == 0

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert save_cache(folder / "c", type) == 0
    assert list(folder.iterdir()) == []
