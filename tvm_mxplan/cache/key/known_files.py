"""Keeps the contents found in a large model's file, by the state of the file: it is read and hashed once.

    text/fingerprint     of the model, 64 hexadecimal digits
    digests/weights      of each initializer's bytes, 32 bytes each

A file is the one that was read if path, device, inode, size and times of change are.  A clock has ticks: what
changed within the last seconds may change again in the same one, and is not kept.  Whatever goes wrong in
here costs the reading, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.fingerprint import Fingerprint, Plain
from ...frontend.stated_inputs import Shape, plain_shape
from ..container import Entry, UnusableCache
from ..store import Store
from .surroundings import shared_surroundings

_WORTH_KEEPING = 4 << 20
_SETTLED_SECONDS = 2.0
_DIGEST_BYTES = 32
_HEX = re.compile(r"[0-9a-f]{64}")

State = tuple[int, ...]


@dataclass(frozen=True)
class KnownModel:
    """The fingerprint of a model in a file, and its initializers' `content_digests`."""

    fingerprint: str
    digests: tuple[bytes, ...]


def state_of(path: str | os.PathLike[str]) -> State:
    """Returns the properties of a file that change when it does; () where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class KnownFile:
    """Knowledge of the model in a file with these input shapes, kept earlier or to be kept."""

    def __init__(
        self,
        store: Store,
        path: str | os.PathLike[str],
        state: State,
        shapes: Mapping[str, Shape] | None,
    ) -> None:
        self._store, self._path, self._state = store, path, state
        self._is_large = bool(state) and state[2] >= _WORTH_KEEPING
        named = {name: plain_shape(shape) for name, shape in (shapes or {}).items()}
        self._facts: dict[str, Plain] = {
            "file": os.path.realpath(path),
            "state": list(state),
            "shapes": named,
        }
        fingerprint = Fingerprint()
        fingerprint.add("file", self._facts)
        fingerprint.add("read by", shared_surroundings()["versions"])
        self._key = fingerprint.hexdigest()

    def find(self) -> KnownModel | None:
        """None for a file that is small, or not known."""
        if not self._is_large:
            return None
        with contextlib.suppress(UnusableCache):
            container = self._store.find(self._key)
            text = bytes(container.read("text", "fingerprint")).decode("ascii", "replace")
            kept = bytes(container.read("digests", "weights"))
            if _HEX.fullmatch(text) and len(kept) % _DIGEST_BYTES == 0:
                places = range(0, len(kept), _DIGEST_BYTES)
                return KnownModel(text, tuple(kept[at : at + _DIGEST_BYTES] for at in places))
        return None

    def keep(self, model: KnownModel) -> None:
        """Note what was found in a file that was in its state before it was read."""
        if not self._is_large:
            return
        settled = time.time_ns() - max(self._state[-2:]) > _SETTLED_SECONDS * 1e9
        if settled and state_of(self._path) == self._state:
            entries = [
                Entry("text", "fingerprint", model.fingerprint.encode()),
                Entry("digests", "weights", b"".join(model.digests)),
            ]
            with contextlib.suppress(UnusableCache):
                self._store.save(self._key, self._facts, entries)
