"""The number of threads of the libraries' calls: one number for the calling thread, whatever the library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..byoc import registry


def threads() -> int:
    """The most that a library uses."""
    return max(engine.threads() for engine in registry.engines())


def set_threads(count: int) -> None:
    """Set the number for all libraries, for the calling thread."""
    for engine in registry.engines():
        engine.set_threads(count)


def thread_limit() -> int | None:
    """The most that all of them can be given; None where there is no limit."""
    limits = [engine.thread_limit() for engine in registry.engines()]
    return min((limit for limit in limits if limit is not None), default=None)


@contextmanager
def with_threads(count: int | None) -> Iterator[None]:
    """Calls of the calling thread use ``count`` threads inside; None leaves them as they are."""
    before = threads()
    if count is None or count == before:
        yield
        return
    set_threads(count)
    try:
        yield
    finally:
        set_threads(before)
