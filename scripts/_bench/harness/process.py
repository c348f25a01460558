"""The parent's end of a worker: starts it, asks it things with a deadline, and always ends it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from .engines import ENGINES
from .worker import Spec

START_TIMEOUT = 120.0
END_TIMEOUT = 5.0
_LOG_TAIL = 400


def environment_of_workers() -> dict[str, str]:
    """This process's environment, where Python may keep byte code: installed packages have theirs."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class WorkerError(Exception):
    """An engine that cannot be measured; ``kind`` is "not installed", "failed", "timed out" or "died"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Worker:
    """A context manager around one worker process."""

    def __init__(self, spec: Spec, log: Path) -> None:
        self._spec = spec
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self.realtime = False
        """Whether the process was permitted the real-time priority that its spec asks for."""

    def __enter__(self) -> Worker:
        threads = str(self._spec.threads)
        settings = {
            **environment_of_workers(),
            "OMP_NUM_THREADS": threads,
            "TVM_NUM_THREADS": threads,
            "PYTHONPATH": os.pathsep.join(filter(None, (_scripts(), os.environ.get("PYTHONPATH")))),
            **ENGINES[self._spec.engine].settings,
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "_bench.harness.worker", self._spec.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=settings,
                start_new_session=True,  # so that what it starts can be ended with it
            )
        try:
            self.realtime = self._receive(START_TIMEOUT)["realtime"]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, do: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """The reply to a request; a worker that fails or does not answer in time raises `WorkerError`."""
        process = self._running()
        request = json.dumps({"do": do, **arguments}) + "\n"
        try:
            process.stdin.write(request.encode())
            process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        reply = self._receive(timeout)
        if "error" in reply:
            raise WorkerError(reply["error"]["kind"], reply["error"]["message"])
        return reply

    def close(self) -> None:
        """End the process and whatever it has started; harmless when it has ended already."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.close()
                process.wait(END_TIMEOUT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()

    def _receive(self, timeout: float) -> dict[str, Any]:
        process = self._running()
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self._kill()
                    raise WorkerError("timed out", f"no answer within {timeout:.0f} s")
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._died()
                self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise WorkerError("died", "the worker has ended")
        return self._process

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._running().pid, signal.SIGKILL)
        self.close()

    def _died(self) -> WorkerError:
        code = self._running().wait()
        self.close()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        tail = self._log.read_text(errors="replace")[-_LOG_TAIL:].strip().replace("\n", " | ")
        return WorkerError("died", f"the process ended {how}: {tail}")


def _scripts() -> str:
    return str(Path(__file__).resolve().parents[2])
