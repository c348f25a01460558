"""Processes that compute all the time, beside those that are timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_WORK = "while True: pass"


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many of them inside, each with a session of its own, as other users' are."""
    started = [subprocess.Popen([sys.executable, "-c", _WORK], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
