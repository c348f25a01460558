"""Reports the progress of tuning: events for a callback, and two printers of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO, TypeAlias

STAGES = ("operators", "groups", "plans")


@dataclass(frozen=True)
class Progress:
    """One measurement is done.

    Attributes
    ----------
    stage : ``operators``, ``groups`` or ``plans``.
    text : what was measured.
    value : what came of it, in ``unit``.
    best : the least value of the stage's kind so far, and what had it; of plans only.
    measured : measurements so far.
    seconds, budget : spent and allowed.
    """

    stage: str
    text: str
    value: float
    unit: str
    best: tuple[str, float] | None
    measured: int
    seconds: float
    budget: float


Callback: TypeAlias = Callable[[Progress], None]


class Bar:
    """One line of a terminal, drawn over and over."""

    def __init__(self, stream: TextIO, columns: int) -> None:
        self._stream = stream
        self._columns = max(columns, 40)

    def __call__(self, event: Progress) -> None:
        share = min(event.seconds / event.budget, 1.0)
        bar = "#" * round(20 * share)
        line = f"[{bar:20}] {event.seconds:4.0f}/{event.budget:.0f} s  {_text(event)}"
        self._stream.write(f"\r{line[: self._columns - 1]:{self._columns - 1}}")
        self._stream.flush()

    def close(self) -> None:
        self._stream.write("\r" + " " * (self._columns - 1) + "\r")
        self._stream.flush()


class Lines:
    """A line for each plan, and one for some measurements of the other stages: for logs."""

    EVERY = 25

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Progress) -> None:
        if event.stage == "plans" or event.measured % self.EVERY == 1:
            print(f"{event.seconds:6.1f} s  {_text(event)}", file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing is left to do."""


def _text(event: Progress) -> str:
    best = f"; best {event.best[1]:,.1f} by {event.best[0]}" if event.best else ""
    return f"{event.stage} {event.measured}: {event.text} {event.value:,.1f} {event.unit}{best}"
