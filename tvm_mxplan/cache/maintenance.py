"""The cache on disk for who looks after it: texts for ``tvmc cache``, and errors in place of reasons."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from ..errors import InvalidInputError
from .compile_cache import default_store
from .container import UnusableCache
from .safe_file import open_container
from .store import Store, StoredFile


def listing() -> str:
    """A line for each file and one for the sum."""
    store, files = _files()
    lines = [f"{file.path.name}  {file.nbytes:>14,}  used {_when(file.used)}" for file in files]
    total = sum(file.nbytes for file in files)
    return "\n".join([*lines, f"{store.folder}: {len(files)} file(s), {total:,} of {store.limit:,} bytes"])


def path_of(name: str) -> Path:
    """The file that a name, the beginning of one, or a path means; InvalidInputError if that is not one."""
    if "/" in name or Path(name).is_file():
        return Path(name)
    store, files = _files()
    found = [file.path for file in files if file.path.name.startswith(name)]
    if len(found) != 1:
        what = f"{len(found)} files begin" if found else "no file begins"
        raise InvalidInputError(f"{store.folder}: {what} with {name!r}; see tvmc cache list")
    return found[0]


def description(path: Path) -> str:
    """Fingerprint, facts and entries of a file."""
    try:
        container = open_container(path)
    except UnusableCache as error:
        raise InvalidInputError(f"{path}: {error}; a compilation will write it anew") from error
    lines = [f"fingerprint {container.fingerprint}", json.dumps(container.facts, indent=1)]
    lines += [f"{e.length:>14,}  {e.sha256[:16]}  {e.kind}/{e.name}" for e in container.entries]
    return "\n".join(lines)


def verified(paths: Sequence[Path]) -> str:
    """A line for each file; InvalidInputError names the first that is damaged, and counts them."""
    checked = [(path, _damage(path)) for path in paths or [file.path for file in _files()[1]]]
    damaged = [f"{path}: {reason}" for path, reason in checked if reason]
    if damaged:
        raise InvalidInputError(f"{len(damaged)} of {len(checked)} file(s) damaged; {'; '.join(damaged)}")
    return "\n".join([*(f"{path.name}: right" for path, _ in checked), f"{len(checked)} file(s) verified"])


def pruned(limit: int | None) -> str:
    """Remove the least recently used files until ``limit`` bytes are left, by default the store's own."""
    try:
        store = default_store()
        removed = store.prune(store.limit if limit is None else limit)
    except UnusableCache as error:
        raise InvalidInputError(str(error)) from error
    return f"{store.folder}: {len(removed)} file(s) removed, {sum(file.nbytes for file in removed):,} bytes"


def _files() -> tuple[Store, list[StoredFile]]:
    try:
        store = default_store()
        return store, store.files()
    except UnusableCache as error:
        raise InvalidInputError(str(error)) from error


def _damage(path: Path) -> str:
    try:
        open_container(path).verify()
    except UnusableCache as error:
        return str(error)
    return ""


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
