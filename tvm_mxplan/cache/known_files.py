"""The digests of a large model's weights, kept by the state of its file, so that a file is hashed once.

    digests/0     of each initializer's bytes, 32 bytes each

A file is the one that was hashed if path, device, inode, size and times of change are.  A clock has ticks:
what changed within the last seconds may change again in the same one, and is not kept.  Whatever goes wrong
in here costs the hashing, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

from ..core.fingerprint import Buffer, Fingerprint, content_digests
from .container import Entry, UnusableCache
from .store import Store
from .surroundings import SCHEMA

_WORTH_KEEPING = 16 << 20
_SETTLED_SECONDS = 2.0
_DIGEST_BYTES = 32

State = tuple[int, ...]


def state_of(path: str | os.PathLike[str]) -> State:
    """What changes when a file does; () where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def digests_of(
    store: Store, path: str | os.PathLike[str], state: State, weights: Sequence[Buffer]
) -> tuple[bytes, ...]:
    """`content_digests` of the weights in a file that was in ``state`` before they were found there."""
    if sum(memoryview(weight).nbytes for weight in weights) < _WORTH_KEEPING:
        return tuple(content_digests(weights))
    name = os.path.realpath(path)
    fingerprint = Fingerprint()
    fingerprint.add("file", [SCHEMA, name, list(state), len(weights)])
    key = fingerprint.hexdigest()
    with contextlib.suppress(UnusableCache):
        kept = bytes(store.find(key).read("digests", "0"))
        if len(kept) == _DIGEST_BYTES * len(weights):
            return tuple(kept[at : at + _DIGEST_BYTES] for at in range(0, len(kept), _DIGEST_BYTES))
    digests = tuple(content_digests(weights))
    settled = time.time_ns() - max(state[-2:]) > _SETTLED_SECONDS * 1e9
    if settled and state_of(path) == state:
        with contextlib.suppress(UnusableCache):
            store.save(key, {"file": name, "state": list(state)}, [Entry("digests", "0", b"".join(digests))])
    return digests
