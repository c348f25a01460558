"""``ChooseAlgorithms``: which algorithm computes each convolution of every region.

Before   convolution conv1 {...} algorithm=direct
After    convolution conv1 {...} algorithm=winograd_f4      where that costs less and errs little enough

The decision is made in ``convolutions``; symbolic shapes are decided on at typical numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.choices import Choices, Question
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.policies import Rule
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import Layouts

from ..costs.model import cost_or_model
from ..costs.source import CostSource
from ..layout.queries import StepQueries
from ..region.attached import carries_program, map_programs, rounding_in
from .convolutions import choose_algorithms

_MODEL_MARGIN = 0.8
_MEASURED_MARGIN = 0.97


def margin_of(cost: CostSource) -> float:
    """The share of the direct sum's cost that another algorithm has to stay below."""
    return _MEASURED_MARGIN if cost.measured else _MODEL_MARGIN


@tvm.transform.module_pass(opt_level=0, name="ChooseAlgorithms")
class ChooseAlgorithms:
    """Module pass; see the module's text.

    Parameters
    ----------
    rule : ``cost``, or one algorithm wherever it is possible.
    max_relative_error : limit on what algorithms add to the error of a module's results; regions share
        evenly what roundings to shorter types leave of it.
    cost : what steps cost: a model, or a ``StepTimer``.
    choices : what was decided earlier is taken from it, what is decided here is noted in it.
    journal : is told which algorithms convolutions do not get, and why regions went back to TVM.
    """

    def __init__(
        self,
        backend: Backend,
        rule: Rule = "cost",
        max_relative_error: float = 1e-4,
        cost: CostSource | None = None,
        choices: Choices | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.backend = backend
        self.rule = rule
        self.max_relative_error = max_relative_error
        self.cost = cost_or_model(cost, backend)
        self.choices = Choices() if choices is None else choices
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        count = sum(1 for function in mod.functions.values() if carries_program(function))
        left = max(0.0, self.max_relative_error - math.sqrt(rounding_in(mod)))

        def choose(program: ir.Program) -> ir.Program:
            max_error = left / count
            question = Question("algorithms", program, max_error)
            known = self.choices.find(question)
            chosen = self._choose(program, max_error) if known is None else known
            self.choices.note(question, chosen, known=known is not None)
            return chosen

        mod, refused = map_programs(mod, self.backend.name, choose)
        self.journal.refuse(refused)
        return mod

    def _choose(self, program: ir.Program, max_error: float) -> ir.Program:
        if self.rule == "direct":
            return program
        chosen, weighed = choose_algorithms(
            program,
            StepQueries(self.backend),
            ColdCosts(self.cost),
            self.backend.layout_rules,
            rule=self.rule,
            max_error=max_error,
            margin=margin_of(self.cost),
        )
        self.journal.weigh(weighed)
        return chosen


@dataclass(frozen=True)
class ColdCosts:
    """Costs where weights come from memory: a timer has them in caches, those of a model are not."""

    warm: CostSource

    @property
    def measured(self) -> bool:
        return self.warm.measured

    @property
    def machine(self) -> MachineRates:
        return self.warm.machine

    def modelled(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return max(self.warm.modelled(program, step, layouts, info), self._reading(info))

    def knows(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> bool:
        return self.warm.knows(program, step, layouts)

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return max(self.warm(program, step, layouts, info), self._reading(info))

    def _reading(self, info: StepInfo) -> float:
        return info.weights_bytes / self.machine.memory.read / 1e3
