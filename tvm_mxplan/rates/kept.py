"""Rates of this machine: those in the cache folder, else measured now and kept there.

A file holds what one machine, with its libraries and its number of threads, was measured to do:

    {"machine": {...}, "rates": {...}, "rounds": 1, "settled": true, "check": "<digest of the rest>"}

A file that is damaged, or made elsewhere, counts as if it were not there.  What is kept is rounded
(``core/machine/rounding``), and stays until it is removed, so that plans do not change from run to run.
Where other processes disturbed a measurement, the next process measures again and keeps the better of each
number, until one was not disturbed, or ``ROUNDS`` were made.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
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
from ..execution.threads import threads
from ..export.files import whole_file

FOLDER = "machine"
SCHEMA = 5
"""Of what is measured; count it up when that changes."""
ROUNDS = 3
_LIMIT = 1 << 20


@dataclass(frozen=True)
class Kept:
    """Rates, how often they were measured, and whether that was enough."""

    rates: MachineRates
    rounds: int = 1
    settled: bool = True


_known: dict[str, Kept] = {}
_lock = threading.Lock()


def rates_here(kept: bool = True) -> MachineRates:
    """Returns this machine's rates with the calling thread's number of threads; a process measures it once.

    Parameters
    ----------
    kept : whether the cache folder is asked, and told.
    """
    facts = _facts()
    digest = _digest(facts)
    with _lock:
        path = _path(digest) if kept else None
        there = _read(path, facts) if path else None
        known = _known.get(digest)
        if known is None:
            known = there if there is not None and there.settled else _measured(there)
        rounds = there.rounds if there is not None else 0
        if there is not None and (there.settled or rounds >= known.rounds):
            known = there
        elif path and known.rates.source == "measured":
            _keep(path, facts, known)
        _known[digest] = known
        return known.rates


def _measured(before: Kept | None) -> Kept:
    """Those that the first library measures which can, and the better of each with those from before."""
    for engine in registry.engines():
        with contextlib.suppress(UnsupportedError):
            rates, disturbed = engine.machine_rates()
            rates, rounds = rates.rounded(), 1
            if before is not None:
                rates, rounds = rates.better(before.rates), before.rounds + 1
            return Kept(rates, rounds, not disturbed or rounds >= ROUNDS)
    return Kept(default_rates(threads()))


def _facts() -> dict[str, Any]:
    """Returns what rates depend on: processor, libraries, threads, variables by which kernels are chosen."""
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


def _read(path: Path, facts: Mapping[str, Any]) -> Kept | None:
    """Reads the file's rates of the machine with these facts; None where it says nothing that can be used."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            check_owner(os.fstat(descriptor))
            data = json.loads(file.read(_LIMIT))
        if data.pop("check") != _check(data) or data["machine"] != json.loads(json.dumps(facts)):
            return None
        return Kept(MachineRates.from_json(data["rates"]), int(data["rounds"]), bool(data["settled"]))
    except (OSError, UnusableCache, UnusableRates, ValueError, KeyError, TypeError, AttributeError):
        return None
    except RecursionError:
        return None


def _keep(path: Path, facts: Mapping[str, Any], kept: Kept) -> None:
    """Write the file; what cannot be kept is measured again by the next process."""
    data = {
        "machine": dict(facts),
        "rates": kept.rates.to_json(),
        "rounds": kept.rounds,
        "settled": kept.settled,
    }
    text = json.dumps({**data, "check": _check(data)}, indent=1, sort_keys=True)
    with contextlib.suppress(OSError, UnusableCache, InvalidInputError):
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # a mode is for the last one alone
        path.parent.mkdir(mode=0o700, exist_ok=True)
        check_owner(path.parent.lstat())
        with whole_file(path) as partial:
            partial.write_text(text + "\n")
            partial.chmod(0o600)


def _check(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
