"""The section ``primitives``: milliseconds of a call with primitives held, fetched or made again each time.

held         the region as it runs
fetched      before each call, every primitive is taken from the process's cache
re-created   the same with that cache off: oneDNN makes each, from its own cache, or without one

Fetching is `library.describe`, which also reads the program and writes down what came of it; that is counted.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..harness.statistics import median, ratio_text

BATCHES = (1, 8)
HEADER = (
    "| model | batch | held ms | fetched ms | re-created ms | without oneDNN's cache ms | "
    "fetched / held | re-created / held | without / held |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)
_WAYS = {"held": None, "fetched": (4096, 0), "re-created": (0, 4096), "bare": (0, 0)}
"""Entries of our cache and of oneDNN's, or None where nothing is asked for."""
_SECONDS = 0.4


def primitives_table(models: Sequence[str], rounds: int) -> Iterator[str]:
    yield f"\n## primitives, {rounds} rounds\n\n{HEADER}"
    for name in models:
        for batch in BATCHES:
            command = [sys.executable, "-m", "_bench.caches.primitives", name, str(batch), str(rounds)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            yield output.splitlines()[-1]


def row(name: str, batch: int, rounds: int) -> str:
    """One line of the table, in this process."""
    import tvm_mxplan
    from tvm_mxplan.execution.machine import tensor_of
    from tvm_mxplan.testing import zoo

    model = zoo.load(name, batch=batch)
    ex = tvm_mxplan.compile(model)
    inputs = [tensor_of(value) for value in zoo.random_inputs(model).values()]
    fetch = _fetch_all(ex)
    milliseconds: dict[str, list[float]] = {way: [] for way in _WAYS}
    for _ in range(rounds):
        for way, capacities in _WAYS.items():
            milliseconds[way].append(_time(lambda: ex(*inputs), fetch, capacities))
    medians = [f"{median(milliseconds[way]):.2f}" for way in _WAYS]
    ratios = [ratio_text(milliseconds[way], milliseconds["held"], 2) for way in list(_WAYS)[1:]]
    return f"| {name} | {batch} | {' | '.join([*medians, *ratios])} |"


def _fetch_all(ex: Any) -> Callable[[], None]:
    from tvm_mxplan.byoc.onednn import library
    from tvm_mxplan.core.program import codec
    from tvm_mxplan.report.inspection import decoded_programs

    programs = [codec.encode(program) for program in decoded_programs(ex.module)]
    describe = library.runtime.function("describe")

    def fetch() -> None:
        for program in programs:
            describe(program, [])

    return fetch


def _time(call: Callable[[], Any], fetch: Callable[[], None], capacities: tuple[int, int] | None) -> float:
    """Milliseconds of one call, the median of as many as fit."""
    from tvm_mxplan.byoc.onednn import library

    if capacities is not None:
        library.set_cache_capacity("primitives", capacities[0], 2**62 if capacities[0] else 0)
        library.runtime("set_library_cache", capacities[1])
        fetch()
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        if capacities is not None:
            fetch()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return median(times)


if __name__ == "__main__":
    print(row(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
