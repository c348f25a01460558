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
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Of this call: each step's number, and its seconds."""
    clock: Callable[[], float] = time.perf_counter
    _started: float = 0.0

    def begin(self, module: Any, symbols: Sequence[int]) -> None:
        self.programs.append(codec.decode(bytes(module["mxplan.program"]())))

    def before(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        self._started = self.clock()

    def after(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        self.seconds.append(self.clock() - self._started)
        self.steps.append(step)


def time_steps(
    executable: Executable,
    inputs: Mapping[str, np.ndarray],
    calls: int,
    clock: Callable[[], float] | None = None,
) -> list[TimedStep]:
    """The steps of ``executable`` in the order in which they run; a call or two come first, untimed.

    Times are the runtime's own, or ``clock``'s, which Python asks: threads may fall asleep meanwhile.
    """
    executable(**inputs)
    first = _Clock()
    _observed(first, executable, inputs)
    every = [_timed(executable, inputs, clock) for _ in range(calls + 1)][1:]
    owners = [program for program in first.programs for _ in program.steps]
    return [
        TimedStep(program, number, statistics.median(samples))
        for program, number, samples in zip(owners, first.steps, zip(*every, strict=True), strict=True)
    ]


def share_of(steps: Sequence[TimedStep], *kinds: type[ir.Attributes]) -> float:
    """Share of the steps' time that steps of some kinds take, 0 to 1."""
    whole = sum(one.seconds for one in steps)
    taken = sum(one.seconds for one in steps if isinstance(one.step.attrs, kinds))
    return taken / whole if whole else 0.0


def _timed(
    executable: Executable, inputs: Mapping[str, np.ndarray], clock: Callable[[], float] | None
) -> list[float]:
    """Seconds of each step of one call."""
    if clock is not None:
        taken = _Clock(clock=clock)
        _observed(taken, executable, inputs)
        return taken.seconds
    library.clock_steps(True)
    try:
        executable(**inputs)
    finally:
        nanoseconds = library.clock_steps(False)
    return [1e-9 * taken for taken in nanoseconds]


def _observed(clock: _Clock, executable: Executable, inputs: Mapping[str, np.ndarray]) -> None:
    library.observe(clock)
    try:
        executable(**inputs)
    finally:
        library.observe(None)
