"""A function in a process of its own, whose memory thousands of earlier tests have not fragmented."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_own_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a module-level function in a fresh process; its arguments have to be picklable."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
