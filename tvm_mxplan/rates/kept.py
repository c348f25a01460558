"""Rates of this machine: those in the cache folder, else measured now and kept there.

A file holds what one machine, with its libraries and its number of threads, was measured to do:

    {"machine": {...}, "rates": {...}, "check": "<digest of the rest>"}

A file that is damaged, or made elsewhere, counts as if it were not there.  What is kept is rounded
(``core/machine/rounding``), and stays until it is removed, so that plans do not change from run to run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import environment
from ..byoc import registry
from ..cache.container import UnusableCache
from ..cache.safe_file import check_owner
from ..core.fingerprint import Fingerprint
from ..core.machine import MachineRates, UnusableRates, default_rates
from ..core.processor import processor_fields
from ..errors import InvalidInputError, UnsupportedError
from ..files import whole_file
from ..threads import threads

FOLDER = "machine"
SCHEMA = 1
"""Of what is measured; count it up when that changes."""
_LIMIT = 1 << 20
_known: dict[str, MachineRates] = {}
_lock = threading.Lock()


def rates_here(kept: bool = True) -> MachineRates:
    """What this machine can do with the calling thread's number of threads.

    Parameters
    ----------
    kept : whether the cache folder is asked, and told.
    """
    facts = _facts()
    digest = _digest(facts)
    with _lock:
        path = _path(digest) if kept else None
        found = _read(path, facts) if path else None
        found = found or _known.get(digest)
        if found is None:
            found = _measured()
        if path and found.source == "measured":
            found = _keep(path, facts, found)
        _known[digest] = found
        return found


def _measured() -> MachineRates:
    """Those that the first library measures which can."""
    for engine in registry.engines():
        with contextlib.suppress(UnsupportedError):
            return engine.machine_rates().rounded()
    return default_rates(threads())


def _facts() -> dict[str, Any]:
    """What rates depend on: processor, libraries, threads, and by which variables kernels are chosen."""
    processor = processor_fields()
    return {
        "CPU": processor.get("model name", ""),
        "flags": hashlib.sha256(processor.get("flags", "").encode()).hexdigest()[:16],
        "CPUs allowed": len(os.sched_getaffinity(0)),
        **registry.facts(),
        **registry.kernel_environment(),
        "schema": SCHEMA,
    }


def _digest(facts: Mapping[str, Any]) -> str:
    fingerprint = Fingerprint()
    fingerprint.add("machine", facts)
    return fingerprint.hexdigest()


def _path(digest: str) -> Path | None:
    folder = environment.cache_folder()
    return None if folder is None else folder / FOLDER / f"{digest[:16]}.json"


def _read(path: Path, facts: Mapping[str, Any]) -> MachineRates | None:
    """What the file says of the machine with these facts; None where it says nothing that can be used."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            check_owner(os.fstat(descriptor))
            data = json.loads(file.read(_LIMIT))
        if data.pop("check") != _check(data) or data["machine"] != json.loads(json.dumps(facts)):
            return None
        return MachineRates.from_json(data["rates"])
    except (OSError, UnusableCache, UnusableRates, ValueError, KeyError, TypeError, AttributeError):
        return None
    except RecursionError:
        return None


def _keep(path: Path, facts: Mapping[str, Any], rates: MachineRates) -> MachineRates:
    """The rates that are kept now: those of another process that was faster, or these."""
    there = _read(path, facts)
    if there is not None:
        return there
    data = {"machine": dict(facts), "rates": rates.to_json()}
    text = json.dumps({**data, "check": _check(data)}, indent=1, sort_keys=True)
    # What cannot be kept is measured again by the next process.
    with contextlib.suppress(OSError, UnusableCache, InvalidInputError):
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        check_owner(path.parent.lstat())
        with whole_file(path) as partial:
            partial.write_text(text + "\n")
            partial.chmod(0o600)
    return rates


def _check(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
