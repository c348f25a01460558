"""Timing one step in given layouts on this machine: costs where the model's guess is not enough.

Steps run alone, on random data, warm caches; the least of a few runs counts, since noise only adds.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout import parse_layout

from .candidates import Layouts
from .costs import StepCost
from .queries import single_step_program


class StepTimer:
    """Microseconds of steps by measurement, each distinct step once, within a budget of seconds.

    Parameters
    ----------
    seconds : the budget.
    model : gives the cost where the budget is spent, and decides what is not worth measuring.
    """

    measured = True

    def __init__(self, backend: Backend, model: StepCost, seconds: float) -> None:
        self._backend = backend
        self._model = model
        self._left = seconds
        self._times: dict[ir.Program, float] = {}

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        estimate = self._model(program, step, layouts, info)
        if info.is_reference:
            return estimate
        question = single_step_program(program, step, layouts)
        if question not in self._times:
            if self._left <= 0:
                return estimate
            start = time.perf_counter()
            self._times[question] = self._time(question)
            self._left -= time.perf_counter() - start
        return self._times[question]

    def _time(self, question: ir.Program) -> float:
        values = [
            replace(value, kind="output", index=0) if value.kind == "local" else value
            for value in question.values
        ]
        program = replace(question, values=tuple(values), name="step")
        generator = np.random.default_rng(0)
        constants = [_random(generator, program.values[v]) for v in program.of_kind("constant")]
        module = self._backend.create_module("step", program, constants)
        ports = (*program.of_kind("input"), *program.of_kind("output"))
        arguments = [_random(generator, program.values[v]) for v in ports]
        function = module["step"]
        best = float("inf")
        for _ in range(8):
            start = time.perf_counter()
            function(*arguments)
            best = min(best, time.perf_counter() - start)
        return 1e6 * best


def _random(generator: np.random.Generator, value: ir.Value) -> tvm.runtime.Tensor:
    """A tensor of the physical shape of ``value``."""
    shape = parse_layout(value.layout).physical_shape(value.shape)
    return tvm.runtime.tensor(generator.random(shape, dtype="float32") + np.float32(0.5))
