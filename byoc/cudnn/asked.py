"""``AskedProcess``: cuDNN in a process of its own, which is asked in JSON.

planner    makes plans (``native/serve.py``).  It may have a driver that is none: engines that cuDNN compiles
           while plans are made want one to be there, and the process that compiles a model, or runs one,
           must not take that for a GPU's.
stopwatch  times plans (``stopwatch.py``).  An engine that reads what is not its own takes the GPU from all
           that its process has there.

What crashes or hangs in there is one operation graph without a plan, or one plan without a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_mxplan.errors import InternalError, UnsupportedError

_START_SECONDS = 120.0
"""Time to begin: imports, and cuDNN's libraries of half a gigabyte, perhaps from a slow disk."""
_ANSWER_SECONDS = 600.0
"""Time for an answer.  One question builds or times eight engines at most, and cuDNN compiles a kernel in up
to tens of seconds on a busy core: a few minutes are work, ten are none."""
_END_SECONDS = 3.0
"""Time to leave once nothing more is asked; what is still there then is killed."""
_SHOWN = 80
"""Bytes of an answer that an error shows."""


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
        self._closings = 0

    @property
    def hello(self) -> Mapping[str, Any]:
        """The version of cuDNN, and the driver that it found; UnsupportedError where there is no cuDNN."""
        with self._lock:
            self._begun()
            return self._hello

    def ask(self, kind: str, question: Any) -> dict[str, Any]:
        """The answer to a question; one that ends the process is answered by an error, ``ended`` with it.

        A process that gives no answer in time is ended.

        Raises
        ------
        UnsupportedError : the process cannot be begun.
        InternalError : the answer is none of ours.
        """
        line = json.dumps({kind: question}).encode() + b"\n"
        closings = self._closings
        with self._lock:
            process = self._begun()
            if self._closings != closings:
                process.kill()  # closed since: this may be another process than the one that was ended
            answer, late = self._answer(process, line, _ANSWER_SECONDS)
            if not answer.endswith(b"\n"):
                how = self._ended(process)
                said = (
                    f"gave no answer in {_ANSWER_SECONDS:g} s"
                    if late
                    else f"ended ({how}) while it was asked"
                )
                return {"error": f"cuDNN's {self._name} {said}", "ended": True}
            found = _decoded(answer)
            if found is None:
                self._ended(process)  # a later answer may be this question's
                raise InternalError(
                    f"cuDNN's {self._name} answered {answer[:_SHOWN]!r}; expected an object in JSON"
                )
        return found

    def close(self) -> None:
        """End the process; the next question begins another one.

        Questions asked before end with the process, since nobody may have time to wait for their answers.
        """
        self._closings += 1
        if not self._lock.acquire(blocking=False):
            process = self._process
            if process is not None:
                process.kill()  # the thread that asks clears up
            return
        try:
            if self._process is not None:
                self._ended(self._process)
        finally:
            self._lock.release()

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._ended(self._process)  # it had nothing to do, or was ended by another
        if self._process is not None:
            return self._process
        try:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise UnsupportedError(f"cuDNN: its {self._name} cannot be begun ({error})") from error
        self._process = process
        line, late = self._answer(process, b"", _START_SECONDS)
        hello = _decoded(line)
        if hello is not None and "version" in hello:
            self._hello = hello
            return process
        how = self._ended(process)
        reason = f"its {self._name} ended ({how}) when it was begun"
        if late:
            reason = f"its {self._name} did not begin in {_START_SECONDS:g} s"
        elif hello is not None and "error" in hello:
            reason = hello["error"]
        elif line:
            reason = f"its {self._name} began with {line[:_SHOWN]!r}"
        raise UnsupportedError(f"cuDNN: {reason}; {self._install}")

    def _answer(self, process: subprocess.Popen[bytes], line: bytes, seconds: float) -> tuple[bytes, bool]:
        """The answer to a line, cut off where the process ended; and whether it was ended for its time."""
        with _killed_after(process, seconds) as late:
            try:
                process.stdin.write(line)  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                return process.stdout.readline(), late.is_set()  # type: ignore[union-attr]
            except OSError:
                return b"", late.is_set()
            except BaseException:  # of the user's: the answer would be taken for the next question's
                process.kill()
                self._ended(process)
                raise

    def _ended(self, process: subprocess.Popen[bytes]) -> str:
        """Ends a process, and says how it ended."""
        self._process = None
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:
                continue  # what was on the way is lost with it
        try:
            code = process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return f"signal {-code}" if code < 0 else f"status {code}"


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kills a process that is at work after some seconds, so that reading of it ends; says if it did."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _decoded(line: bytes) -> dict[str, Any] | None:
    """The object that a whole line is in JSON, else None."""
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
