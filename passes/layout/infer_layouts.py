"""``InferLayouts``: a physical layout for every value of every region, and the bytes that follow from it.

Before   programs in plain layouts, implementations unknown
After    programs with layouts, reorders where layouts meet, implementations, padded bytes, scratchpads

The backend is asked which implementation it would run for each candidate; reference implementations are
refused unless nothing else exists.  Symbolic shapes are decided on at typical numbers.  Where buffers stand
is ``PlanMemory``'s work.
"""

from __future__ import annotations

from dataclasses import replace

import tvm

from tvm_mxplan.byoc.backend import Backend, Rejections
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.choices import Choices
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.dims import is_static
from tvm_mxplan.core.specialize import typical
from tvm_mxplan.errors import UnsupportedError

from ..region.attached import map_programs
from .apply import apply_layouts
from .candidates import Layouts, Policy, candidates
from .choose import choose_by_cost
from .costs import Machine, step_cost
from .measure import StepTimer
from .queries import StepQueries


def infer_layouts(
    program: ir.Program, backend: Backend, policy: Policy = "cost", tune_seconds: float = 0.0
) -> ir.Program:
    """Layouts for one program; see the module's text.

    Raises
    ------
    UnsupportedError : no candidate of some step can be made by the backend.
    """
    choices = choose(program, backend, policy, tune_seconds)
    laid_out = apply_layouts(program, choices, back_to_plain=policy == "naive")
    return annotate(laid_out, backend)


def choose(program: ir.Program, backend: Backend, policy: Policy, tune_seconds: float = 0.0) -> list[Layouts]:
    """Layouts of every step's operands: by cost, or the policy's first that is no reference code."""
    queries = StepQueries(backend)
    program = typical(program)
    if policy == "cost":
        machine = Machine()

        def cost(program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
            return step_cost(program, step, layouts, info, machine)

        if tune_seconds > 0:
            cost = StepTimer(backend, cost, tune_seconds)  # type: ignore[assignment]
        return choose_by_cost(program, queries, cost, backend.block, machine)[0]
    homes = [value.layout for value in program.values]
    choices = []
    for step in program.steps:
        source = next(operand.value for operand in step.operands if operand.role == "src")
        options = candidates(program, step, homes[source], policy, backend.block)
        choice = _first_fast(program, step, options, queries)
        choices.append(choice)
        position = [operand.role for operand in step.operands].index("dst")
        homes[step.dst] = choice[position]
        if policy == "naive":
            homes[step.dst] = program.values[step.dst].layout
    return choices


def _first_fast(program: ir.Program, step: ir.Step, options: list[Layouts], queries: StepQueries) -> Layouts:
    slow: Layouts | None = None
    reasons = []
    for option in options:
        answer = queries.ask(program, step, option)
        if answer.error:
            reasons.append(answer.error)
        elif not answer.is_reference:
            return option
        elif slow is None:
            slow = option
    if slow is None:
        raise UnsupportedError(f"{step.name}: {'; '.join(dict.fromkeys(reasons))}")
    return slow


def annotate(program: ir.Program, backend: Backend) -> ir.Program:
    """Fill in implementations, bytes and scratchpads from the backend's own answer.

    Programs with symbolic shapes get implementations only: those of typical shapes.
    """
    description = backend.describe(typical(program))
    if not all(is_static(value.shape) for value in program.values):
        steps = tuple(
            replace(step, implementation=info.implementation)
            for step, info in zip(program.steps, description.steps, strict=True)
        )
        return replace(program, steps=steps)
    steps = tuple(
        replace(step, implementation=info.implementation, scratchpad_bytes=info.scratchpad_bytes)
        for step, info in zip(program.steps, description.steps, strict=True)
    )
    values = tuple(
        replace(value, nbytes=info.nbytes)
        for value, info in zip(program.values, description.values, strict=True)
    )
    return replace(program, steps=steps, values=values)


@tvm.transform.module_pass(opt_level=0, name="InferLayouts")
class InferLayouts:
    """Module pass; see the module's text.

    Parameters
    ----------
    backend : whose regions to lay out.
    policy : ``cost``, or one layout wherever it is possible: ``channels_last``, ``blocked``, ``plain``, or
        ``naive``, which also reorders around every step.
    tune_seconds : seconds to spend on measuring candidates; 0 trusts the cost model.
    rejections : filled with the reasons for which regions went back to TVM.
    choices : what was decided earlier is taken from it, what is decided here is noted in it.
    """

    def __init__(
        self,
        backend: Backend,
        policy: Policy = "cost",
        tune_seconds: float = 0.0,
        rejections: Rejections | None = None,
        choices: Choices | None = None,
    ) -> None:
        self.backend = backend
        self.choices = choices
        self.rejections = {} if rejections is None else rejections
        self.policy = policy
        self.tune_seconds = tune_seconds

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return map_programs(mod, self.backend.name, self._infer, self.rejections)

    def _infer(self, program: ir.Program) -> ir.Program:
        if self.choices is None:
            return self._decide(program)
        known = self.choices.find(program)
        if known is not None and annotate(known, self.backend) == known:
            self.choices.note(program, known, known=True)
            return known
        decided = self._decide(program)
        self.choices.note(program, decided)
        return decided

    def _decide(self, program: ir.Program) -> ir.Program:
        return infer_layouts(program, self.backend, self.policy, self.tune_seconds)
