"""The time of every step of a model's regions, as their runtime runs them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.executable import Executable


@dataclass(frozen=True)
class TimedStep:
    """A step of a program, and the median seconds of its runs."""

    program: ir.Program
    number: int
    seconds: float

    @property
    def step(self) -> ir.Step:
        return self.program.steps[self.number]


@dataclass
class _Clock:
    """An observer that only looks at the time; regions and steps come in the same order in every call."""

    programs: list[ir.Program] = field(default_factory=list)
    times: list[tuple[int, float]] = field(default_factory=list)
    """Of this call: a step's number and its seconds."""
    clock: Callable[[], float] = time.perf_counter
    _started: float = 0.0

    def begin(self, module: Any, symbols: Sequence[int]) -> None:
        self.programs.append(codec.decode(bytes(module["mxplan.program"]())))

    def before(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        self._started = self.clock()

    def after(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        self.times.append((step, self.clock() - self._started))


def time_steps(
    executable: Executable,
    inputs: Mapping[str, np.ndarray],
    calls: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[TimedStep]:
    """The steps of ``executable`` in the order in which they run; a call or two come first, untimed."""
    executable(**inputs)
    clocks = [_Clock(clock=clock) for _ in range(calls + 1)]
    try:
        for clock in clocks:
            library.observe(clock)
            executable(**inputs)
    finally:
        library.observe(None)
    clocks = clocks[1:]
    owners = [program for program in clocks[0].programs for _ in program.steps]
    seconds = zip(*([taken for _, taken in clock.times] for clock in clocks), strict=True)
    numbers = [number for number, _ in clocks[0].times]
    return [
        TimedStep(program, number, statistics.median(samples))
        for program, number, samples in zip(owners, numbers, seconds, strict=True)
    ]
