"""Calls a second of many instances on one machine, beside one instance that has all processors.

    scripts/bench throughput --models resnet50,mobilenet_v2 --engines ours,onnxruntime,openvino

An instance is a process with a model, one thread and a processor of its own.  All instances of an engine run
at once, the engines take turns round by round; every answer is checked first.  Calls a second are the calls
of a burst over the longest of its instances' times, the median over rounds.

instances       one of one thread on each processor
one             a single instance with a thread on each processor
more            calls a second of the instances over those of the single one
ours / better   seconds a call, ours over those of the better peer, way by way; below 1 is faster
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.reference import worst_relative_l2

from ..harness.engines import ENGINES
from ..harness.files import Files, read_arrays, write_expected, write_exported, write_model
from ..harness.process import Worker, WorkerError
from ..harness.schedule import SETTLE_SECONDS, WARM_UP, rotated
from ..harness.statistics import median
from ..harness.worker import Spec
from ..inputs import modern

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT = 900.0
WAYS = ("instances", "one")
COLUMNS = "| model | engine | instances, calls/s | one, calls/s | more | ours / better |"


@dataclass
class Fleet:
    """The workers of an engine in one way, and how many calls each makes in a burst."""

    workers: list[Worker]
    calls: int

    def rate(self, pool: ThreadPoolExecutor) -> float:
        """Calls a second of a burst that all workers make at once."""
        ask = [
            pool.submit(worker.ask, "run", TIMEOUT, iterations=self.calls, warm_up=WARM_UP)
            for worker in self.workers
        ]
        longest = max(sum(one.result()["latencies"]) for one in ask)
        return self.calls * len(self.workers) / longest


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table in Markdown; returns the exit status."""
    options = _parsed(arguments)
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    print(format_environment(environment(ROOT)), file=sys.stderr)
    print(f"{COLUMNS}\n| --- | --- |{' ---: |' * (COLUMNS.count('|') - 3)}")
    for name in options.models:
        with tempfile.TemporaryDirectory(prefix="bench_throughput_") as directory:
            if name in modern.NAMES["modern"]:
                exports = modern.Exports(options.folder, options.exporting_python)
                path, inputs = exports.model(name, 1), modern.inputs(name, 1, "modern")
                files = write_exported(path, inputs, Path(directory))
            else:
                files = Files(Path(directory))
                write_model(name, 1, files)
            try:
                write_expected(files, cpus, TIMEOUT)
                rates = measured(options.engines, files, cpus, options.rounds, options.seconds)
            except WorkerError as error:
                print(f"bench throughput: {name}: {error}", file=sys.stderr)
                return 1
        print("\n".join(rows(name, rates)), flush=True)
    return 0


def measured(
    engines: Sequence[str], files: Files, cpus: tuple[int, ...], rounds: int, seconds: float
) -> dict[tuple[str, str], float]:
    """Calls a second by engine and way; raises `WorkerError` where an engine fails or is wrong."""
    expected = read_arrays(files.expected)
    places = {"instances": [(1, (cpu,)) for cpu in cpus], "one": [(len(cpus), cpus)]}
    with ExitStack() as alive, ThreadPoolExecutor(len(cpus)) as pool:
        fleets: dict[tuple[str, str], Fleet] = {}
        for engine in engines:
            for way in WAYS:
                workers = []
                for number, (threads, allowed) in enumerate(places[way]):
                    artifact = files.directory / f"{engine}_{threads}.so"
                    spec = Spec(engine, str(files.model), str(artifact), str(files.inputs), threads, allowed)
                    if ENGINES[engine].compile is not None and number == 0:
                        with Worker(spec, files.log(engine)) as compiler:
                            compiler.ask("compile", TIMEOUT)
                    worker = alive.enter_context(Worker(spec, files.log(engine)))
                    answer = files.directory / f"answer_{engine}_{way}_{number}.npz"
                    worker.ask("load", TIMEOUT, outputs=str(answer))
                    error = worst_relative_l2(read_arrays(answer), expected)
                    if error > ENGINES[engine].tolerance:
                        raise WorkerError("wrong", f"{engine}: relative L2 {error:.1e} against onnxruntime")
                    workers.append(worker)
                trial = workers[0].ask("run", TIMEOUT, iterations=3, warm_up=WARM_UP)
                fleets[engine, way] = Fleet(workers, max(3, round(seconds / median(trial["latencies"]))))
        found: dict[tuple[str, str], list[float]] = {key: [] for key in fleets}
        for turn in range(rounds):
            for key in rotated(list(fleets), turn):
                time.sleep(SETTLE_SECONDS)
                found[key].append(fleets[key].rate(pool))
    return {key: median(values) for key, values in found.items()}


def rows(model: str, rates: Mapping[tuple[str, str], float]) -> list[str]:
    """The lines of a model; the first engine is held against the others."""
    engines = list(dict.fromkeys(engine for engine, _ in rates))
    lines = []
    for engine in engines:
        many, one = (rates[engine, way] for way in WAYS)
        against = ""
        if engine == engines[0] and len(engines) > 1:
            better = (max(rates[peer, way] for peer in engines[1:]) / rates[engine, way] for way in WAYS)
            against = ", ".join(f"{ratio:.3f}" for ratio in better)
        lines.append(f"| {model} | {engine} | {many:.1f} | {one:.1f} | {many / one:.2f} | {against} |")
    return lines


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench throughput", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=lambda text: text.split(","), default=["resnet50", "mobilenet_v2"])
    parser.add_argument(
        "--engines", type=lambda text: text.split(","), default=["ours", "onnxruntime", "openvino"]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a burst (0.5)")
    parser.add_argument(
        "--folder", type=Path, default=modern.default_folder(), help="of the modern zoo's exports"
    )
    parser.add_argument("--exporting-python", default=sys.executable)
    options = parser.parse_args(arguments)
    known = (*zoo.names(), *modern.NAMES["modern"])
    for name, among in [
        *((name, known) for name in options.models),
        *((name, ENGINES) for name in options.engines),
    ]:
        if name not in among:
            parser.error(f"{name!r} is not one of {', '.join(among)}")
    if min(options.rounds, options.seconds) <= 0:
        parser.error("--rounds and --seconds are positive")
    return options
