"""Measures the value of a whole plan under each strategy: times of calls, bytes, joules.  Less is better.

latency      microseconds of one call
throughput   microseconds per answer, with one thread and one instance on each processor
memory       bytes of arenas and packed weights, exact
energy       bytes that steps read and write, by their layouts
joules       microjoules per call, by the machine's counters
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

from ..byoc.backend import Backend
from ..core.program import program as ir
from ..errors import UnsupportedError
from ..execution.threads import set_threads, threads
from ..report.memory_report import MemoryReport

UNITS = {
    "latency": "us",
    "throughput": "us per answer",
    "memory": "bytes",
    "energy": "bytes moved",
    "joules": "uJ per call",
}
POWERCAP = Path("/sys/class/powercap")
_JOULES_SECONDS = 0.2

Call = Callable[[], object]
Port: TypeAlias = tuple[tuple[int, ...], str]
"""Shape and element type of what a plan takes."""


def is_timed(strategy: str) -> bool:
    """Whether values come from running plans, so that they differ from run to run."""
    return strategy in ("latency", "throughput", "joules")


def sampler(strategy: str) -> Callable[[Callable[[], Call]], Callable[[], float]]:
    """Makes, of something that makes instances of a plan, a function that takes one sample.

    Raises
    ------
    UnsupportedError : the machine counts no joules.
    """
    if strategy == "throughput":
        return _throughput
    if strategy == "joules":
        counters = energy_counters()
        return lambda make: _joules(make(), counters)
    return lambda make: _latency(make())


def _latency(call: Call) -> Callable[[], float]:
    def sample() -> float:
        start = time.perf_counter()
        call()
        return 1e6 * (time.perf_counter() - start)

    return sample


def _throughput(make: Callable[[], Call]) -> Callable[[], float]:
    """Instances side by side, each on a thread of its own whose libraries use one thread."""
    count = threads()
    pools = [ThreadPoolExecutor(1) for _ in range(count)]

    def prepare() -> Call:
        set_threads(1)
        call = make()
        call()
        return call

    calls = [future.result() for future in [pool.submit(prepare) for pool in pools]]

    def sample() -> float:
        start = time.perf_counter()
        futures = [pool.submit(_twice, call) for pool, call in zip(pools, calls, strict=True)]
        for future in futures:
            future.result()
        return 1e6 * (time.perf_counter() - start) / (2 * count)

    return sample


def _twice(call: Call) -> None:
    call()
    call()


def _joules(call: Call, counters: Sequence[Path]) -> Callable[[], float]:
    def sample() -> float:
        while True:
            before, calls, start = _read(counters), 0, time.perf_counter()
            while not calls or time.perf_counter() - start < _JOULES_SECONDS:
                call()
                calls += 1
            used = [after - b for after, b in zip(_read(counters), before, strict=True)]
            if min(used) >= 0:  # else a counter ran over
                return sum(used) / calls

    return sample


def energy_counters(folder: Path | None = None) -> list[Path]:
    """The counters of whole packages, in microjoules; UnsupportedError where there are none to read."""
    folder = POWERCAP if folder is None else folder
    found = sorted(folder.glob("intel-rapl:[0-9]*/energy_uj"))
    packages = [path for path in found if path.parent.name.count(":") == 1]
    try:
        _read(packages)
    except (OSError, ValueError) as error:
        reason = f"cannot be read ({error})"
        raise UnsupportedError(f"tune_for=joules: the counters in {folder} {reason}") from None
    if not packages:
        raise UnsupportedError(
            f"tune_for=joules: this machine shows no energy counters in {folder}; "
            "tune_for=energy compares the bytes that plans move"
        )
    return packages


def _read(counters: Sequence[Path]) -> list[int]:
    return [int(path.read_text()) for path in counters]


def memory_bytes(
    memory: Sequence[MemoryReport], programs: Iterable[tuple[Backend, Sequence[ir.Program]]]
) -> int:
    """Bytes of arenas that exist, and of weights as libraries' steps read them, in place or packed.

    ``programs`` are those of each library.
    """
    arenas = sum(report.height for report in memory if not report.stands_in)
    infos = [info for backend, own in programs for program in own for info in backend.describe(program).steps]
    return arenas + sum(info.weights_bytes for info in infos)


def moved_bytes(programs: Sequence[ir.Program], backend: Backend) -> int:
    """Bytes that all steps read and write; those that have nothing left to run move none."""
    total = 0
    for program in programs:
        for step, info in zip(program.steps, backend.describe(program).steps, strict=True):
            if step.implementation:
                values = {*step.reads(), *step.results}
                activations = [v for v in values if program.values[program.root(v)].kind != "constant"]
                total += info.weights_bytes + sum(program.values[v].nbytes for v in activations)
    return total


def typical_sample(samples: Sequence[float]) -> float:
    """Returns the number that stands for samples that noise only lengthens: their lower quartile."""
    return samples[0] if len(samples) < 2 else statistics.quantiles(samples, n=4)[0]


def fixed_ports(main: Any) -> list[Port] | None:
    """The parameters of a Relax function; None where shapes are symbolic or types unknown."""
    found = []
    for parameter in main.params:
        shape, dtype = getattr(parameter.ty, "shape", None), getattr(parameter.ty, "dtype", None)
        if shape is None or not dtype or not all(hasattr(dim, "value") for dim in shape):
            return None
        found.append((tuple(int(dim) for dim in shape), str(dtype)))
    return found


def random_arguments(ports: Sequence[Port]) -> list[Any]:
    """Tensors of these shapes and types, for runs whose times count."""
    import numpy as np
    import tvm

    generator, found = np.random.default_rng(0), []
    for dims, dtype in ports:
        array = generator.standard_normal(dims) if dtype.startswith("float") else np.zeros(dims)
        found.append(tvm.runtime.tensor(array.astype(dtype)))
    return found
