"""Real-time priority for all threads of this process, for as long as something is timed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PRIORITY = 5


@contextmanager
def priority(wanted: bool) -> Iterator[None]:
    """Run inside at real-time priority, where that is permitted; threads that are made inside inherit it."""
    if not wanted:
        yield
        return
    _set(os.SCHED_FIFO, _PRIORITY)
    try:
        yield
    finally:
        _set(os.SCHED_OTHER, 0)


def _set(policy: int, level: int) -> None:
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(level))
