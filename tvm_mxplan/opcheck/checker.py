"""Watching a call: every step of every region is worked out again, from what it really read."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.engine import Engine
from tvm_mxplan.byoc.region_module import program_of
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import specialize

from .compare import judge, prior_of
from .physical import CheckedTensor, read
from .replay import Observed, write
from .result import Difference, Finding, OpCheck

_thread = threading.local()


class Checker:
    """An observer of the runtime's that judges each step.

    Parameters
    ----------
    folder : where the first step that differs is written for a replay, None for nowhere.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = folder
        self._steps = 0
        self._differences: list[Difference] = []
        self._not_finite: list[str] = []
        self._worst = (0.0, "")

    def result(self) -> OpCheck:
        """Returns the result of the check so far."""
        worst, step = self._worst
        return OpCheck(self._steps, tuple(self._differences), tuple(self._not_finite), worst, step)

    # --- what the runtime calls -------------------------------------------------------------------------

    def begin(self, module: Any, symbols: Sequence[int]) -> None:
        program = program_of(module)
        numbers = {b.name: int(number) for b, number in zip(program.symbols, symbols, strict=True)}
        self._program = specialize(program, numbers)
        engine = registry.engine_of(module)
        assert engine is not None, "the engine that made a module shows its steps"
        self._library = engine.name
        self._implementations = _implementations(engine, module, numbers)

    def before(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        self._reads = {
            int(value): self._tensor(int(value), tensor)
            for value, tensor in zip(values, tensors, strict=True)
        }

    def after(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        results = {
            int(value): self._tensor(int(value), tensor)
            for value, tensor in zip(values, tensors, strict=True)
        }
        self._judge(int(step), results)
        self._reads = {}

    # -----------------------------------------------------------------------------------------------------

    def _tensor(self, value: int, tensor: Any) -> CheckedTensor:
        raw = np.from_dlpack(tensor)
        return read(raw.copy(), self._program.values[value], raw.ctypes.data)

    def _judge(self, number: int, results: Mapping[int, CheckedTensor]) -> None:
        program, step = self._program, self._program.steps[number]
        self._steps += 1
        prior = prior_of(program, step, self._reads)
        verdict = judge(program, step, self._reads, results, prior)
        self._worst = max(self._worst, (verdict.worst, step.name))
        if not verdict.finite and not verdict.findings:
            self._not_finite.append(step.name)
        for finding in verdict.findings:
            difference = self._difference(number, step, finding)
            if self._folder is not None and not self._differences:
                stem = f"opcheck-{program.name}-{number}-{step.name}"
                ran = Observed(self._library, program, step, self._reads, results, prior)
                path = write(self._folder, stem, str(difference), ran)
                difference = self._difference(number, step, finding, str(path))
            self._differences.append(difference)

    def _difference(self, number: int, step: ir.Step, finding: Finding, replay: str = "") -> Difference:
        program = self._program
        layouts = tuple(f"{o.role}: {program.values[o.value].layout}" for o in step.operands)
        implementation = self._implementations[number]
        return Difference(
            program.name, number, step.name, step.kind, implementation, layouts, finding, replay
        )


@contextmanager
def checking(folder: str | os.PathLike[str] | None = None) -> Iterator[Checker]:
    """Check every region that the calling thread runs inside, by whatever means it calls it.

    Inside of another check the outer one sees the calls, the inner one none.

    with checking() as checker:
        vm["main"](x)
    print(checker.result())
    """
    checker = Checker(folder)
    if getattr(_thread, "checks", False):
        yield checker
        return
    _thread.checks = True
    _observe(checker)
    try:
        yield checker
    finally:
        _observe(None)
        _thread.checks = False


def _observe(checker: Checker | None) -> None:
    for engine in registry.engines():
        engine.observe(checker)


def _implementations(engine: Engine, module: Any, numbers: dict[str, int]) -> list[str]:
    """Lists each step's implementation for one assignment of the symbols and the calling thread's threads."""
    threads = engine.threads()
    for specialization in engine.stats(module)["specializations"]:
        if (specialization["symbols"], specialization["threads"]) == (numbers, threads):
            return [step["implementation"] for step in specialization["steps"]]
    raise KeyError(f"the runtime knows no specialization for {numbers}")
