"""Keeps off the screen what TVM and its importers print: warnings of the block builder, failing operators."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

_screens: list[dict[int, int]] = []
"""Standard output (1) and error (2) as they were before they were captured; one entry while they are."""


def open_closed() -> None:
    """Gives standard output and error somewhere to go where the caller has closed them.

    Files that are opened later would get their numbers, and with them what is printed.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is not None:
            continue
        sink = os.open(os.devnull, os.O_WRONLY)
        if sink != number and not _is_open(number):
            os.dup2(sink, number)
            os.close(sink)
            sink = number
        setattr(sys, name, os.fdopen(sink, "w", closefd=False))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@contextmanager
def captured(show: bool) -> Iterator[None]:
    """Swallow standard output and error, C++'s included; with ``show``, let everything through."""
    if show:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved = {number: os.dup(number) for number in (1, 2)}
    _screens.append(saved)
    with tempfile.TemporaryFile("w") as sink:
        try:
            for number in saved:
                os.dup2(sink.fileno(), number)
            with redirect_stdout(sink), redirect_stderr(sink):
                yield
        finally:
            _screens.pop()
            for number, copy in saved.items():
                os.dup2(copy, number)
                os.close(copy)


@contextmanager
def progress_stream() -> Iterator[TextIO]:
    """Standard error for what is shown while a verb works, captured or not."""
    with _stream(2) as stream:
        yield stream


@contextmanager
def results_stream() -> Iterator[TextIO]:
    """Standard output for what is shown before a verb ends, captured or not."""
    with _stream(1) as stream:
        yield stream


def _stream(number: int) -> TextIO:
    return open(os.dup(_screens[-1][number] if _screens else number), "w")
