"""Processes that compute all the time, beside those that are timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_WORK = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True: pass
"""
"""Ends with its input, so it does not outlive the parent, however that ends."""


@contextmanager
def busy_processes(count: int) -> Iterator[tuple[int, ...]]:
    """So many of them inside, by their ids, each with a session of its own, as other users' are."""
    command = [sys.executable, "-c", _WORK]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) for _ in range(count)]
    try:
        yield tuple(process.pid for process in started)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()
