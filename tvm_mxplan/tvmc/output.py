"""Keeps off the screen what TVM and its importers print: warnings of the block builder, failing operators."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

_screens: list[int] = []
"""Standard error as it was before it was captured; one entry while it is."""


@contextmanager
def captured(show: bool) -> Iterator[None]:
    """Swallow standard output and error, C++'s included; with ``show``, let everything through."""
    if show:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved = {number: os.dup(number) for number in (1, 2)}
    _screens.append(saved[2])
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
    with open(os.dup(_screens[-1] if _screens else 2), "w") as stream:
        yield stream
