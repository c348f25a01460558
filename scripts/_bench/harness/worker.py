"""The process that holds one engine. `process.Worker` starts it: ``python -m _bench.harness.worker <spec>``.

It reads requests and writes replies, one JSON object a line; what an engine prints goes to the log instead.

    compile                     -> seconds
    load  outputs=<path>        -> import_s, load_s, {base,imported,peak}_mib; writes the first answer there
    run   iterations=, warm_up= -> latencies, and processor_s of all threads in a call, in seconds
    any failure                 -> error: {kind: "not installed" | "failed", message}

The process ends at the end of its input, so it does not outlive the parent.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

ANSWERS_BEFORE_PEAK = 3
"""Answers after which the memory peak is read: some engines allocate or repack on the second."""


@dataclass(frozen=True)
class Spec:
    """The task of one worker."""

    engine: str
    model: str
    artifact: str
    inputs: str
    threads: int
    cpus: tuple[int, ...]
    realtime: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Spec:
        fields = json.loads(text)
        return cls(**{**fields, "cpus": tuple(fields["cpus"])})


def main() -> None:
    spec = Spec.from_json(sys.argv[1])
    replies = _take_stdout()
    _die_with_parent()
    os.sched_setaffinity(0, spec.cpus)
    realtime = spec.realtime and _become_realtime()

    worker = _Worker(spec)
    _send(replies, {"ready": True, "realtime": realtime})
    for request in _requests(sys.stdin):
        try:
            reply = worker.answer(request)
        except ModuleNotFoundError as error:
            reply = _failure("not installed", error)
        except Exception as error:  # whatever an engine throws is a row of the table, not the end of the run
            traceback.print_exc()
            reply = _failure("failed", error)
        _send(replies, reply)


class _Worker:
    def __init__(self, spec: Spec) -> None:
        import numpy as np

        from .engines import ENGINES, Runner

        self._spec = spec
        self._engine = ENGINES[spec.engine]
        with np.load(spec.inputs) as inputs:
            self._inputs = {name: np.ascontiguousarray(inputs[name]) for name in inputs.files}
        self._runner: Runner | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        action = request.pop("do")
        handlers = {"compile": self._compile, "load": self._load, "run": self._run}
        return handlers[action](**request)

    def _compile(self) -> dict[str, Any]:
        if self._engine.compile is None:
            raise ValueError(f"{self._engine.name} compiles when it loads")
        self._import()
        start = time.perf_counter()
        self._engine.compile(self._spec.model, self._spec.artifact)
        return {"seconds": time.perf_counter() - start}

    def _load(self, outputs: str) -> dict[str, Any]:
        import numpy as np

        _reset_peak()
        base = _status_mib("VmRSS")
        import_s = self._import()
        imported = _status_mib("VmRSS")
        start = time.perf_counter()
        source = self._spec.artifact if self._engine.compile else self._spec.model
        self._runner = self._engine.load(source, self._inputs, self._spec.threads)
        answer = self._runner.call()
        load_s = time.perf_counter() - start
        arrays = self._runner.fetch(answer)
        for _ in range(ANSWERS_BEFORE_PEAK - 1):
            self._runner.call()
        peak = _status_mib("VmHWM")
        np.savez(outputs, *arrays)
        memory = {"base_mib": base, "imported_mib": imported, "peak_mib": peak}
        return {"import_s": import_s, "load_s": load_s, **memory}

    def _run(self, iterations: int, warm_up: int) -> dict[str, Any]:
        if self._runner is None:
            raise RuntimeError("run was asked before load")
        call, clock = self._runner.call, time.perf_counter
        latencies = [0.0] * iterations
        gc.collect()
        gc.disable()
        for _ in range(warm_up):
            call()
        spent = time.process_time()
        for index in range(iterations):
            start = clock()
            call()
            latencies[index] = clock() - start
        spent = time.process_time() - spent
        gc.enable()
        return {"latencies": latencies, "processor_s": spent / iterations}

    def _import(self) -> float:
        start = time.perf_counter()
        for module in self._engine.modules:
            importlib.import_module(module)
        return time.perf_counter() - start


def _take_stdout() -> TextIO:
    """The real standard output, for replies; file descriptor 1 goes to the log from here on."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


def _die_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _become_realtime() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    except OSError:
        return False
    return True


def _requests(source: TextIO) -> Iterator[dict[str, Any]]:
    for line in source:
        yield json.loads(line)


def _send(replies: TextIO, reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def _failure(kind: str, error: Exception) -> dict[str, Any]:
    first_line = (str(error).strip() or "no message").splitlines()[-1]
    return {"error": {"kind": kind, "message": f"{type(error).__name__}: {first_line}"[:300]}}


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status_mib(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    main()
