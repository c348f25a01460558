"""``Planner``: cuDNN in a process of its own, which is asked for plans in JSON (``native/serve.py``).

A process of its own may have a driver that is none: engines that cuDNN compiles while plans are made want
one to be there, and the process that compiles a model, or runs one, must not take that for a GPU's.  And what
crashes in there is one operation graph without a plan.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm_mxplan.errors import UnsupportedError

SCRIPT = Path(__file__).resolve().parent / "native" / "serve.py"


class Planner:
    """One process, begun when the first question is asked and again after one that it did not survive.

    Safe to use from many threads; questions wait for each other.

    Parameters
    ----------
    paths : the arguments of ``native/serve.py``.
    install : the way out where the process cannot be begun.
    """

    def __init__(self, paths: Sequence[str], install: str, script: Path = SCRIPT) -> None:
        self._command = [sys.executable, "-I", str(script), *paths]
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
        """The answer to a question; one that ends the process is answered by an error."""
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
                return {"error": f"cuDNN's planner ended ({self._ended(process)}) while it was asked"}
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process; the next question begins another one."""
        with self._lock:
            if self._process is not None:
                self._ended(self._process)

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        line = process.stdout.readline()  # type: ignore[union-attr]
        hello = json.loads(line) if line.endswith(b"\n") else {}
        if "version" not in hello:
            reason = hello.get("error") or f"its planner ended ({self._ended(process)}) when it was begun"
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
