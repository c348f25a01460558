"""The parent's end of a worker: gives it one case after the other, and outlives its crashes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from _shared.workers import Worker, started

from .engines import environment


@dataclass(frozen=True)
class Ending:
    """The ending of a case on an engine: ``pass``, ``wrong``, ``error``, ``crash`` or ``timeout``."""

    name: str
    status: str
    reason: str


def run_cases(engine: str, kinds: Sequence[str], names: Sequence[str], timeout: float) -> Iterator[Ending]:
    """Endings of cases, in their order; a worker that dies or hangs is ended, and another goes on behind."""
    with Worker(lambda: _start(engine, kinds), timeout) as worker:
        for name in names:
            answer = worker.answer(name)
            yield Ending(name, answer["status"], answer["reason"])


def _start(engine: str, kinds: Sequence[str]) -> subprocess.Popen[bytes]:
    return started("_onnx.worker", (engine, ",".join(kinds)), environment(engine))
