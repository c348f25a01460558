"""One configuration: a model at a batch and a number of threads, on every engine.

1. Each engine that compiles ahead of time does so in a process of its own.
2. Every engine is started several times, in turn, for its load time and memory peak; the last start stays.
3. Its first answer is checked against the reference; an engine that differs is not timed.
4. Rounds: in each, each engine in turn runs a burst of calls while the others sleep. The order rotates.
   A round during which a hypervisor gave the processors to other guests is run again, some times.

An engine that fails anywhere gets a status and the rest goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tvm_mxplan.core.processor import StolenTime
from tvm_mxplan.testing.reference import worst_relative_l2

from .engines import ENGINES
from .files import Files, read_arrays
from .process import Worker, WorkerError
from .statistics import Spread, median, ratio_to_best, spread
from .worker import Spec

T = TypeVar("T")
SETTLE_SECONDS = 0.02
"""Between two bursts: longer than the idle threads of an engine spin before they sleep."""
TRIAL_ITERATIONS = 3
_AGAIN = 4
"""Times that a disturbed round is run; the last one counts whatever came."""
_PAUSE_SECONDS = 1.0
"""Before it is run again."""
WARM_UP = 2
"""Untimed calls before every burst: the other engines have emptied the caches."""


@dataclass(frozen=True)
class Options:
    """The numbers of rounds and calls, and their durations."""

    rounds: int = 10
    iterations: int | None = None
    """Calls in a burst; None takes as many as fit ``burst_seconds``."""
    burst_seconds: float = 0.4
    min_iterations: int = 3
    max_iterations: int = 200
    starts: int = 3
    timeout: float = 900.0
    """Seconds an engine may take to compile, to load, or for one burst."""
    realtime: bool = False
    processor: bool = False
    """Time by the processor seconds of all threads, one number a burst: what others do counts less."""


@dataclass(frozen=True)
class Configuration:
    """The subject of one run: a model, a batch and threads."""

    model: str
    batch: int | None
    """None where it is what the file of the model has."""
    threads: int


@dataclass
class EngineResult:
    """The result of one engine in one configuration."""

    engine: str
    status: str = "ok"
    """Else "not installed", "failed", "timed out", "died", "wrong"."""
    detail: str = ""
    relative_l2: float | None = None
    compile_s: float | None = None
    imports_s: list[float] = field(default_factory=list)
    loads_s: list[float] = field(default_factory=list)
    bases_mib: list[float] = field(default_factory=list)
    """Resident before the engine is imported."""
    imported_mib: list[float] = field(default_factory=list)
    peaks_mib: list[float] = field(default_factory=list)
    realtime: bool = False
    rounds: list[list[float]] = field(default_factory=list)
    """Latencies in seconds, by round."""
    processor_s: list[float] = field(default_factory=list)
    """Seconds of all threads in a call, by round."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def fail(self, error: WorkerError) -> None:
        self.status, self.detail = error.kind, error.message

    def round_medians(self) -> list[float]:
        return [median(latencies) for latencies in self.rounds]

    def latency(self) -> Spread | None:
        pooled = [latency for latencies in self.rounds for latency in latencies]
        return spread(pooled) if self.ok and pooled else None


def measure(
    configuration: Configuration,
    engines: Sequence[str],
    files: Files,
    cpus: tuple[int, ...],
    options: Options,
) -> dict[str, EngineResult]:
    """The results by engine, in the order of ``engines``."""
    results = {name: EngineResult(name) for name in engines}
    session = _Session(configuration, files, cpus, options)
    with ExitStack() as alive:
        for name, result in results.items():
            with _noting(result):
                result.compile_s = session.compile(name)
        workers: dict[str, Worker] = {}
        for start in range(options.starts):
            stays = start == options.starts - 1
            for name, result in results.items():
                if not result.ok:
                    continue
                with _noting(result):
                    worker = session.start(result, alive if stays else None)
                    if worker is not None:
                        workers[name] = worker
        for name, worker in workers.items():
            if not results[name].ok:
                worker.close()
        _run_rounds({name: workers[name] for name in workers if results[name].ok}, results, options)
    return results


def subject_ratio(results: dict[str, EngineResult], subject: str) -> Spread | None:
    """The subject against the better of its peers, round by round."""
    own = results[subject]
    peers = {
        name: result.round_medians() for name, result in results.items() if name != subject and result.ok
    }
    return ratio_to_best(own.round_medians(), peers) if own.ok else None


class _Session:
    """Starts processes for one configuration."""

    def __init__(
        self, configuration: Configuration, files: Files, cpus: tuple[int, ...], options: Options
    ) -> None:
        self._threads = configuration.threads
        self._files = files
        self._cpus = cpus[: configuration.threads]
        self._options = options
        self._expected = read_arrays(files.expected)

    def compile(self, engine: str) -> float | None:
        """Seconds; None for engines that compile when they load."""
        if ENGINES[engine].compile is None:
            return None
        with self._worker(engine, realtime=False) as worker:
            return worker.ask("compile", self._options.timeout)["seconds"]

    def start(self, result: EngineResult, keep: ExitStack | None) -> Worker | None:
        """Load once and note time and memory; with ``keep`` check the answer too and return the worker."""
        answer = self._files.answer(result.engine)
        with ExitStack() as stack:
            worker = stack.enter_context(self._worker(result.engine, self._options.realtime))
            reply = worker.ask("load", self._options.timeout, outputs=str(answer))
            result.imports_s.append(reply["import_s"])
            result.loads_s.append(reply["load_s"])
            result.bases_mib.append(reply["base_mib"])
            result.imported_mib.append(reply["imported_mib"])
            result.peaks_mib.append(reply["peak_mib"])
            result.realtime = worker.realtime
            result.relative_l2 = worst_relative_l2(read_arrays(answer), self._expected)
            if result.relative_l2 > ENGINES[result.engine].tolerance:
                raise WorkerError("wrong", f"relative L2 {result.relative_l2:.1e} against onnxruntime")
            if keep is None:
                return None
            keep.push(stack.pop_all())
            return worker

    def _worker(self, engine: str, realtime: bool) -> Worker:
        files = self._files
        spec = Spec(
            engine=engine,
            model=str(files.model),
            artifact=str(files.artifact(engine)),
            inputs=str(files.inputs),
            threads=self._threads,
            cpus=self._cpus,
            realtime=realtime,
        )
        return Worker(spec, files.log(engine))


def _run_rounds(workers: dict[str, Worker], results: dict[str, EngineResult], options: Options) -> None:
    iterations = {}
    for name, worker in workers.items():
        with _noting(results[name]):
            trial = worker.ask("run", options.timeout, iterations=TRIAL_ITERATIONS, warm_up=WARM_UP)
            iterations[name] = _burst(median(trial["latencies"]), options)
    for index in range(options.rounds):
        for name, reply in _undisturbed(index, workers, results, iterations, options).items():
            timed = [reply["processor_s"]] if options.processor else reply["latencies"]
            results[name].rounds.append(timed)
            results[name].processor_s.append(reply["processor_s"])


def _undisturbed(
    index: int,
    workers: dict[str, Worker],
    results: dict[str, EngineResult],
    iterations: dict[str, int],
    options: Options,
) -> dict[str, dict[str, Any]]:
    """The engines' answers of a round that no other guest disturbed, or of the last one that was tried."""
    for again in range(_AGAIN):
        replies: dict[str, dict[str, Any]] = {}
        stolen = StolenTime()
        for name in rotated(list(workers), index):
            if not results[name].ok:
                continue
            time.sleep(SETTLE_SECONDS)
            with _noting(results[name]):
                replies[name] = workers[name].ask(
                    "run", options.timeout, iterations=iterations[name], warm_up=WARM_UP
                )
        if not stolen.disturbs():
            break
        if again + 1 < _AGAIN:
            time.sleep(_PAUSE_SECONDS)
    return replies


def _burst(latency: float, options: Options) -> int:
    if options.iterations is not None:
        return options.iterations
    fitting = int(options.burst_seconds / latency)
    return min(max(fitting, options.min_iterations), options.max_iterations)


def rotated(names: Sequence[T], by: int) -> list[T]:
    """``names`` from the one at ``by`` on, and then those before it: nobody is always the first."""
    by %= max(len(names), 1)
    return [*names[by:], *names[:by]]


@contextmanager
def _noting(result: EngineResult) -> Iterator[None]:
    try:
        yield
    except WorkerError as error:
        result.fail(error)
