"""The parent's end of a worker: gives it one case after the other, and outlives its crashes."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .engines import environment

_START_TIMEOUT = 120.0


@dataclass(frozen=True)
class Ending:
    """The ending of a case on an engine: ``pass``, ``wrong``, ``error``, ``crash`` or ``timeout``."""

    name: str
    status: str
    reason: str


def run_cases(engine: str, kinds: Sequence[str], names: Sequence[str], timeout: float) -> Iterator[Ending]:
    """Endings of cases, in their order; a worker that dies or hangs is ended, and another goes on behind."""
    worker: subprocess.Popen[bytes] | None = None
    for name in names:
        fresh = worker is None
        if worker is None:
            worker = _start(engine, kinds)
        ending = _ask(worker, name, timeout + _START_TIMEOUT * fresh)
        if ending.status in ("crash", "timeout"):
            worker.kill()
            _end(worker)
            worker = None
        yield ending
    if worker is not None:
        _end(worker)


def _start(engine: str, kinds: Sequence[str]) -> subprocess.Popen[bytes]:
    settings = environment(engine)
    scripts = str(Path(__file__).resolve().parents[1])
    settings["PYTHONPATH"] = os.pathsep.join(filter(None, (scripts, settings.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "_onnx.worker", engine, ",".join(kinds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=settings,
    )


def _ask(worker: subprocess.Popen[bytes], name: str, timeout: float) -> Ending:
    assert worker.stdin and worker.stdout
    try:
        worker.stdin.write(f"{name}\n".encode())
        worker.stdin.flush()
    except BrokenPipeError:
        return Ending(name, "crash", f"the worker ended with status {worker.wait()}")
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        if not selector.select(timeout):
            return Ending(name, "timeout", f"no answer within {timeout:g} s")
    line = worker.stdout.readline()
    if not line:
        return Ending(name, "crash", f"the worker ended with status {worker.wait()}")
    return Ending(**json.loads(line))


def _end(worker: subprocess.Popen[bytes]) -> None:
    assert worker.stdin
    with contextlib.suppress(BrokenPipeError):
        worker.stdin.close()
    try:
        worker.wait(5)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
