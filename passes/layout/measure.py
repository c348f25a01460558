"""Costs by timing: steps, reorders, copies, and reorders together with what reads them.

Everything runs alone, on random data; the least of some runs counts, since noise only adds.  Where it runs,
on this machine or another, is the ``timing``'s to say.  What is known already, and whether there is time for
more, is the ``Meter``'s; without its answer the model's estimate counts, scaled by how far measurements were
from it so far.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias

import numpy as np
import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of, reorder
from tvm_mxplan.core.step_facts import Layouts

from ..costs.source import CostSource, Reader
from .queries import single_step_program

MeasuredKind: TypeAlias = Literal["step", "reorder", "copy", "group"]
Sample: TypeAlias = tuple[float, int]
"""Microseconds, and the number of runs they rest on."""

_WARM_UP = 2
_RUNS = (4, 16)
_SECONDS = 0.02
_ENOUGH_RATIOS = 5


class Meter(Protocol):
    """An object that keeps the measurements and the budget."""

    def microseconds(
        self, kind: MeasuredKind, question: ir.Program, measure: Callable[[], Sample], /
    ) -> float | None:
        """Returns the time of ``question``, known or found by ``measure``; None where the budget is spent."""
        ...


class StepTimer:
    """A source of costs that measures; see the module's text.

    Parameters
    ----------
    timing : runs a program of steps; ``time_alone`` does so here.
    model : gives the cost of what is not measured.
    """

    measured = True

    def __init__(self, timing: Callable[[ir.Program], Sample], model: CostSource, meter: Meter) -> None:
        self._timing = timing
        self._model = model
        self._meter = meter
        self._ratios: list[float] = []
        self._answered: set[ir.Program] = set()

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        estimate = self._model(program, step, layouts, info)
        if info.is_reference:
            return estimate
        found = self._ask("step", single_step_program(program, step, layouts))
        if found is None:
            return estimate * self._scale()
        if estimate > 0:
            self._ratios.append(found / estimate)
        return found

    @property
    def machine(self) -> MachineRates:
        return self._model.machine

    def modelled(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return self._model.modelled(program, step, layouts, info)

    def knows(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> bool:
        return single_step_program(program, step, layouts) in self._answered

    def reorder(
        self, program: ir.Program, value: int, layout: str, sources: Sequence[str], reader: Reader | None
    ) -> float:
        """Returns the reorder's time alone, or the time that it adds to its reader if that is more."""
        rank = len(program.values[value].shape)
        source = sources[0] if sources else plain_layout(rank)
        alone = self._ask("reorder", _reorder_program(program.values[value], source, layout))
        if alone is None:
            return self._model.reorder(program, value, layout, sources, reader) * self._scale()
        if reader is None or not isinstance(reader[0].attrs, ir.Convolution | ir.Deconvolution):
            return alone
        step, layouts = reader
        single = single_step_program(program, step, layouts)
        together = self._ask("group", _with_reorder(program, value, reader, single, source, layout))
        apart = self._ask("step", single)
        return alone if together is None or apart is None else max(alone, together - apart)

    def copies(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> float:
        found = self._ask("copy", single_step_program(program, step, layouts))
        return self._model.copies(program, step, layouts) * self._scale() if found is None else found

    def _ask(self, kind: MeasuredKind, question: ir.Program) -> float | None:
        found = self._meter.microseconds(kind, question, lambda: self._time(question))
        if found is not None:
            self._answered.add(question)
        return found

    def _scale(self) -> float:
        return statistics.median(self._ratios) if len(self._ratios) >= _ENOUGH_RATIOS else 1.0

    def _time(self, question: ir.Program) -> Sample:
        return self._timing(question)


def time_alone(backend: Backend, question: ir.Program) -> Sample:
    """Run a program of a step or two in this process, on random data."""
    values = list(question.values)
    for number, value in enumerate(values):
        if value.kind == "local":
            written = sum(other.kind == "output" for other in values)
            values[number] = replace(value, kind="output", index=written)
    program = replace(question, values=tuple(values), name="step")
    generator = np.random.default_rng(0)
    constants = [_random(generator, program.values[v]) for v in program.of_kind("constant")]
    module = backend.create_module("step", program, constants)
    ports = (*program.of_kind("input"), *program.of_kind("output"))
    arguments = [_random(generator, program.values[v]) for v in ports]
    function = module["step"]
    for _ in range(_WARM_UP):
        function(*arguments)
    return least_of_runs(lambda: function(*arguments))


def least_of_runs(run: Callable[[], object]) -> Sample:
    """The shortest of as many runs as fit a few milliseconds."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < _RUNS[0] or (len(times) < _RUNS[1] and time.perf_counter() - begin < _SECONDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times), len(times)


def _reorder_program(value: ir.Value, source: str, target: str) -> ir.Program:
    before = ir.Value("", value.shape, value.dtype, "input", source, 0)
    after = ir.Value("", value.shape, value.dtype, "local", target)
    step = reorder("", 0, 1)
    return ir.Program("", (before, after), (step,))


def _with_reorder(
    program: ir.Program, value: int, reader: Reader, single: ir.Program, source: str, layout: str
) -> ir.Program:
    """``single``, the reader alone, behind a reorder of what it reads from ``value``."""
    pairs = list(zip(operands_of(reader[0]), reader[1], strict=True))
    at = next(n for n, ((role, v), _) in enumerate(pairs) if v == value and role not in ir.RESULT_ROLES)
    (only,) = single.steps
    number = operands_of(only)[at][1]
    values = list(single.values)
    values.append(replace(values[number], layout=source))
    values[number] = values[number].inside()
    step = reorder("", len(values) - 1, number)
    return replace(single, values=tuple(values), steps=(step, only))


def _random(generator: np.random.Generator, value: ir.Value) -> tvm.runtime.Tensor:
    """A tensor of the physical shape of ``value``."""
    shape = parse_layout(value.layout).physical_shape(value.shape)
    numbers = generator.random(shape, dtype="float32") + np.float32(0.5)
    return tvm.runtime.tensor(numbers.astype(numpy_type(value.dtype), copy=False))
