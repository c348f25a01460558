"""A worker's other end: gives it one task after the other, a line for each, and outlives its crashes."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_START_TIMEOUT = 120.0
Answer = Mapping[str, Any]


def started(module: str, arguments: Sequence[str], settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A worker: a module of the scripts' that reads lines and writes one of JSON for each."""
    scripts = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (scripts, settings.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**settings, "PYTHONPATH": path},
    )


class Worker:
    """Answers tasks, by another process where one has died or hangs."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], timeout: float) -> None:
        self._start, self.timeout = start, timeout
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    def answer(self, task: str) -> Answer:
        """The worker's answer; one with the status ``crash`` or ``timeout`` where there is none."""
        fresh = self._process is None
        process = self._process = self._process or self._start()
        answer = ask(process, task, self.timeout + _START_TIMEOUT * fresh)
        if answer["status"] in ("crash", "timeout"):
            process.kill()
            _end(process)
            self._process = None
        return answer


def ask(worker: subprocess.Popen[bytes], task: str, timeout: float) -> Answer:
    """Gives a process one task and waits for its answer."""
    assert worker.stdin and worker.stdout
    ended: Callable[[], Answer] = lambda: {  # noqa: E731
        "status": "crash",
        "reason": f"the worker ended with status {worker.wait()}",
    }
    try:
        worker.stdin.write(f"{task}\n".encode())
        worker.stdin.flush()
    except BrokenPipeError:
        return ended()
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        if not selector.select(timeout):
            return {"status": "timeout", "reason": f"no answer within {timeout:g} s"}
    line = worker.stdout.readline()
    answer: Answer = json.loads(line) if line else ended()
    return answer


def _end(worker: subprocess.Popen[bytes]) -> None:
    assert worker.stdin
    with contextlib.suppress(BrokenPipeError):
        worker.stdin.close()
    try:
        worker.wait(5)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
