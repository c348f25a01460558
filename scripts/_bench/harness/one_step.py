"""One step of oneDNN's as a function on arrays, and calls that take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder

Call = Callable[[], np.ndarray]


def one_step(
    attrs: ir.Attributes,
    dst: tuple[int, ...],
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
) -> Callable[..., object]:
    """A function of the inputs, in their order, and of the result in float32, which it writes."""
    b = ProgramBuilder("step")
    operands = [(role, b.port("input", role, one.shape, str(one.dtype))) for role, one in inputs.items()]
    port = b.port("output", "dst", dst, "float32")
    operands += [(role, b.constant(array)) for role, array in constants.items()]
    b.write_output(b.step("step", attrs, dst, operands), port)
    return library.trial(b.finish(), b.constants)


def call_of(
    attrs: ir.Attributes,
    dst: tuple[int, ...],
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
) -> Call:
    """A call of the step on these inputs, which gives its result."""
    function, result = one_step(attrs, dst, inputs, constants), np.empty(dst, "float32")

    def call() -> np.ndarray:
        function(*inputs.values(), result)
        return result

    return call


def held(name: str, result: np.ndarray, exact: np.ndarray, most: float) -> None:
    """SystemExit where a result is off by more than ``most``, relative, in the L2 norm."""
    off = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
    if not off <= most:
        raise SystemExit(f"{name}: results are off by {off:.1e}")


def medians_in_turns(
    calls: Sequence[Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    each: int = 1,
    untimed: int = 0,
) -> list[float]:
    """Median microseconds of each call, all in turns, ``each`` times in a turn behind ``untimed`` others.

    Every other round goes backwards, and the next one begins with another call: what runs before a call
    changes its caches and its clock.
    """
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        order = [(turn // 2 + at) % len(calls) for at in range(len(calls))]
        for number in reversed(order) if turn % 2 else order:
            call = calls[number]
            for _ in range(untimed):
                call()
            start = clock()
            for _ in range(each):
                call()
            times[number].append((clock() - start) / each * 1e6)
    return [statistics.median(spent) for spent in times]
