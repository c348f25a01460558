"""Processes that are forked with all that is heavy imported, and run tests on code changed in memory.

Nothing of ours is imported before the fork, so every child imports the package from the text that it tests.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .reached import Recorder
from .tree import ROOT, module_of

SITE = Path(__file__).resolve().parent / "site"
MEMORY = 6 << 30  # bytes that a child may map beside what its parent has
_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Ended:
    """The end of a child.

    Attributes
    ----------
    status : pytest's exit status; None where the child crashed or ran out of time.
    reason : a line on what stopped it, "" where all tests passed.
    seconds : of processor time.
    """

    status: int | None
    reason: str
    seconds: float


class Server:
    """Runs tests in children of this process.

    Parameters
    ----------
    folder : temporary; takes the children's files.
    code : keeps instrumented code for other runs.
    """

    def __init__(self, folder: Path, code: Path) -> None:
        self._folder, self._code = folder, code
        code.mkdir(parents=True, exist_ok=True)
        # ``import tvm`` would import ours, as it does with all plug-ins that are installed.
        sys.modules["tvm_mxplan"] = stub = ModuleType("tvm_mxplan")
        stub._autoload = lambda: None  # type: ignore[attr-defined]
        import hypothesis  # noqa: F401
        import numpy  # noqa: F401
        import onnx.reference  # noqa: F401
        import scipy.optimize
        import scipy.sparse  # noqa: F401
        import tvm.relax.frontend.onnx  # noqa: F401

        del sys.modules["tvm_mxplan"]
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
        # Runs of pytest remove each other's folders where they share one.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        assert not any(name.startswith("tvm_mxplan") for name in sys.modules)
        gc.collect()
        gc.freeze()

    def record(self, test: str, files: Sequence[str], limit: float) -> dict[str, Any] | str:
        """Run the tests of one file and note the lines: see ``_Observer``; text where the run ends early."""
        output = self._folder / "observed.json"

        def child() -> int:
            recorder = Recorder(ROOT, {module_of(file): file for file in files}, self._code)
            recorder.install()
            observer = _Observer(recorder)
            status = _run_tests([test], observer, "--maxfail=1000")
            output.write_text(json.dumps(observer.observed))
            return status

        output.unlink(missing_ok=True)
        ended = self._fork(child, limit)
        if ended.status not in (0, 1, 5):
            return f"{test}: {ended.reason}"
        found: dict[str, Any] = json.loads(output.read_text())
        return found

    def test(self, source: str, text: str, tests: Sequence[str], limit: float) -> Ended:
        """Run tests, named by pytest's ids, with the text of one file in place of its own.

        One file of tests after the other: what fails early saves reading the others, which takes longer than
        most tests.
        """
        changed = self._folder / "changed.py"
        changed.write_text(text)

        def child() -> int:
            os.environ["MUTATE_MODULE"], os.environ["MUTATE_FILE"] = module_of(source), str(ROOT / source)
            os.environ["MUTATE_TEXT"] = str(changed)
            os.environ["PYTHONPATH"] = f"{SITE}:{os.environ.get('PYTHONPATH', '')}"
            runpy.run_path(str(SITE / "sitecustomize.py"))
            files: dict[str, list[str]] = {}
            for name in tests:
                files.setdefault(name.split("::")[0], []).append(name)
            ended = (_run_tests([file], _Chosen(chosen)) for file, chosen in files.items())
            return next((status for status in ended if status not in (0, 5)), 0)

        return self._fork(child, limit)

    def _fork(self, work: Callable[[], int], limit: float) -> Ended:
        """Run ``work`` in a child, for ``limit`` seconds of its processor, twenty times that by the clock."""
        log = self._folder / "output.txt"
        sys.stdout.flush()
        sys.stderr.flush()
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            _be_child(work, log, limit)
        try:
            status, usage = _wait(child, begin + 20 * limit + 60)
        except BaseException:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        seconds = usage.ru_utime + usage.ru_stime
        last = _last_line(log)
        if os.WIFEXITED(status):
            return Ended(os.WEXITSTATUS(status), last, seconds)
        number = signal.Signals(os.WTERMSIG(status)).name
        timed_out = number in ("SIGKILL", "SIGXCPU")
        return Ended(None, "out of time" if timed_out else f"crashed: {number}", seconds)


def _wait(child: int, until: float) -> tuple[int, resource.struct_rusage]:
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what its tests started and left
            return status, usage
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            return status, usage
        time.sleep(0.02)


def _be_child(work: Callable[[], int], log: Path, limit: float) -> None:
    """Run ``work`` and end the process with its status."""
    status = 3
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(file, stream)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(ROOT)
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _run_tests(files: Iterable[str], plugin: object, until: str = "-x") -> int:
    import tvm_mxplan

    tvm_mxplan._autoload()  # as ``import tvm`` does
    quick = ["-m", "not slow and not alone", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([until, "-q", "--tb=line", *quick, *files], plugins=[plugin]))


def _last_line(log: Path) -> str:
    """The line that says why tests failed."""
    lines = log.read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))]
    return (failed or lines or [""])[-1 if failed else 0][:200]


class _Chosen:
    """Keeps the tests that were chosen, in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: at for at, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[item.nodeid])


class _Observer:
    """Notes which lines each test runs.

    ``observed`` holds the files that were ``imported``; the lines of ``shared``, which were run while tests
    were collected or fixtures made; for each of the ``tests`` that passed its ``seconds`` and ``lines``; and
    those that ``failed``.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._begin = 0.0
        self.observed: dict[str, Any] = {"imported": [], "shared": {}, "tests": {}, "failed": []}

    def pytest_runtest_logstart(self) -> None:
        self._share()
        self._begin = time.process_time()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        self._share()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.observed["failed"].append(report.nodeid)
        if report.when == "call":
            lines = self._recorder.take()
            if report.passed:
                seconds = time.process_time() - self._begin
                self.observed["tests"][report.nodeid] = {"seconds": seconds, "lines": lines}
        else:
            self._share()

    def pytest_sessionfinish(self) -> None:
        self._share()
        self.observed["imported"] = self._recorder.imported()

    def _share(self) -> None:
        for file, lines in self._recorder.take().items():
            known = self.observed["shared"].get(file, [])
            self.observed["shared"][file] = sorted({*known, *lines})
