"""``InferLayouts``: a physical layout for every value of every region, and the bytes that follow from it.

Before   programs in plain layouts, implementations unknown
After    programs with layouts, reorders where layouts meet, implementations, padded bytes, scratchpads

The backend is asked which implementation it would run for each candidate; reference implementations are
refused unless nothing else exists.  Where buffers stand is ``PlanMemory``'s work.
"""

from __future__ import annotations

from dataclasses import replace

import tvm
from tvm_mxplan.byoc.backend import Backend

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.dims import is_static
from tvm_mxplan.errors import UnsupportedError

from ..region.attached import map_programs
from .apply import apply_layouts
from .candidates import Layouts, Policy, candidates
from .queries import StepQueries


def infer_layouts(program: ir.Program, backend: Backend, policy: Policy = "channels_last") -> ir.Program:
    """Layouts for one program; see the module's text.

    Raises
    ------
    UnsupportedError : no candidate of some step can be made by the backend.
    """
    choices = choose(program, backend, policy)
    laid_out = apply_layouts(program, choices, back_to_plain=policy == "naive")
    return annotate(laid_out, backend)


def choose(program: ir.Program, backend: Backend, policy: Policy) -> list[Layouts]:
    """One candidate for each step: the first whose implementation is no reference code."""
    queries = StepQueries(backend)
    homes = [value.layout for value in program.values]
    static = all(is_static(value.shape) for value in program.values)
    choices = []
    for step in program.steps:
        source = next(operand.value for operand in step.operands if operand.role == "src")
        options = candidates(program, step, homes[source], policy, backend.block)
        choice = _first_fast(program, step, options, queries) if static else options[0]
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
    """Fill in implementations, bytes and scratchpads from the backend's own answer."""
    if not all(is_static(value.shape) for value in program.values):
        return program
    description = backend.describe(program)
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
    policy : ``channels_last``, ``blocked``, ``plain``, or ``naive`` (reorders around every step).
    """

    def __init__(self, backend: Backend, policy: Policy = "channels_last") -> None:
        self.backend = backend
        self.policy = policy

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return map_programs(
            mod, self.backend.name, lambda program: infer_layouts(program, self.backend, self.policy)
        )
