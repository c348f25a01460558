"""``AskedProcess``: cuDNN in a process of its own, which is asked in JSON.

planner    makes plans (``native/serve.py``).  It may have a driver that is none: engines that cuDNN compiles
           while plans are made want one to be there, and the process that compiles a model, or runs one,
           must not take that for a GPU's.
stopwatch  times plans (``stopwatch.py``).  An engine that reads what is not its own takes the GPU from all
           that its process has there.

What crashes in there is one operation graph without a plan, or one plan without a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tvm_mxplan.errors import UnsupportedError


class ProcessEndedError(UnsupportedError):
    """A process that did not survive a question."""


class AskedProcess:
    """One process, begun when the first question is asked and again after it ended.

    Its first line has the ``version`` of what answers, or an ``error``; a question is a line, an answer one.
    Safe to use from many threads; questions wait for each other.

    Parameters
    ----------
    name : of what answers, for errors.
    arguments : of Python: a script or a module, and what it is given.
    install : the way out where the process cannot be begun.
    """

    def __init__(self, name: str, arguments: Sequence[str], install: str) -> None:
        self._name = name
        self._command = [sys.executable, *arguments]
        self._install = install
        self._process: subprocess.Popen[bytes] | None = None
        self._hello: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def hello(self) -> Mapping[str, Any]:
        """The version of cuDNN, and the driver that it found; UnsupportedError where there is no cuDNN."""
        with self._lock:
            self._begun()
            return self._hello

    def ask(self, kind: str, question: Any) -> dict[str, Any]:
        """The answer to a question; one that ends the process is answered by an error, ``ended`` with it."""
        line = json.dumps({kind: question}).encode() + b"\n"
        with self._lock:
            process = self._begun()
            try:
                process.stdin.write(line)  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                answer = process.stdout.readline()  # type: ignore[union-attr]
            except OSError:
                answer = b""
            if not answer.endswith(b"\n"):
                how = self._ended(process)
                return {"error": f"cuDNN's {self._name} ended ({how}) while it was asked", "ended": True}
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process; the next question begins another one."""
        with self._lock:
            if self._process is not None:
                self._ended(self._process)

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._ended(self._process)  # it had nothing to do, or was ended by another
        if self._process is not None:
            return self._process
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        line = process.stdout.readline()  # type: ignore[union-attr]
        hello = json.loads(line) if line.endswith(b"\n") else {}
        if "version" not in hello:
            reason = (
                hello.get("error") or f"its {self._name} ended ({self._ended(process)}) when it was begun"
            )
            raise UnsupportedError(f"cuDNN: {reason}; {self._install}")
        self._process, self._hello = process, hello
        return process

    def _ended(self, process: subprocess.Popen[bytes]) -> str:
        """Ends a process, and says how it ended."""
        self._process = None
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:
                continue  # what was on the way is lost with it
        code = process.wait()
        return f"signal {-code}" if code < 0 else f"status {code}"
