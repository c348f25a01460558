"""Files of what a process decided or made: written whole or not at all, and used where their facts agree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..export.files import whole_file
from .container import Entry, UnusableCache, write


def check_facts(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """UnusableCache names the first fact that differs, with both values."""
    for name in sorted(set(found) | set(expected)):
        if name not in found:
            raise UnusableCache(
                f"it does not say for which {name} it was made, here it is {expected[name]!r}"
            )
        theirs, ours = found[name], expected.get(name)
        if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
            check_facts(theirs, ours)
        elif theirs != ours:
            raise UnusableCache(f"made for {name} {theirs!r}, here it is {ours!r}")


def write_file(path: Path, fingerprint: str, facts: Mapping[str, Any], entries: list[Entry]) -> None:
    """Write a container that its owner alone may read."""
    with whole_file(path) as partial:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write(descriptor, fingerprint, facts, entries)
        finally:
            os.close(descriptor)
