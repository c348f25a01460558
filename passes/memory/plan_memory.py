"""``PlanMemory``: one arena for each region, every value and scratchpad at a fixed byte of it.

Before   values that know their bytes (``InferLayouts``)
After    the same with offsets, the arena's size, and the implementations and scratchpads that are left where
         results stand in place

On request steps are reordered where that makes the arena smaller, and only there: the primitives are the same
in any order, but what a step finds in the cache is not.

Every plan is checked by a validator that shares nothing with the solver.  Programs with symbolic shapes get
results in place and no offsets: the runtime plans each shape when it first sees it.  Without ``reuse`` every
value (with its views) and scratchpad has bytes of its own, for comparison and for finding faults of a plan.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.allocation import Plan, Problem, solve, validate
from tvm_mxplan.core.allocation.alignment import ALIGNMENT
from tvm_mxplan.core.allocation.bounds import lower_bounds
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.errors import InternalError

from ..region.annotate import annotate
from ..region.attached import map_programs
from .elide_concats import elide_concats
from .liveness import ArenaProblem, arena_problem
from .order_steps import order_steps
from .share_in_place import share_in_place
from .view_slices import view_slices

MAX_NODES = 100_000
"""Placements the exact search may try: about a second for a plan that cannot be proven to be the best."""


class PlannedMemory(NamedTuple):
    """A program with offsets, and the solver's plan with its bounds; None where shapes are symbolic."""

    program: ir.Program
    plan: Plan | None = None


def plan_memory(
    program: ir.Program,
    backend: Backend,
    reuse: bool = True,
    reorder: bool = False,
) -> PlannedMemory:
    """Offsets for one program; see the module's text."""
    if not all(is_static(value.shape) for value in program.values):
        return PlannedMemory(annotate(share_in_place(program, backend), backend))
    program = share_in_place(elide_concats(view_slices(program)), backend)
    program = annotate(program, backend)  # what stands in place has less to run, or nothing
    problem, plan = _planned(program, reuse)
    other = order_steps(program) if reuse and reorder else program
    if other is not program:
        other_problem, other_plan = _planned(other, reuse)
        if other_plan.height < plan.height:
            program, problem, plan = other, other_problem, other_plan
    return PlannedMemory(with_offsets(program, problem, plan), plan)


def _planned(program: ir.Program, reuse: bool) -> tuple[ArenaProblem, Plan]:
    problem = arena_problem(program)
    plan = solve(problem.problem, max_nodes=MAX_NODES) if reuse else stacked(problem.problem)
    faults = validate(problem.problem, plan)
    if faults:
        raise InternalError(f"{program.name}: the memory plan is wrong: {faults[0]}")
    return problem, plan


def stacked(problem: Problem) -> Plan:
    """Every item on top of the one before it: no byte is used twice."""
    sizes = [-(-item.extent // ALIGNMENT) * ALIGNMENT for item in problem.items]
    tops = list(accumulate(sizes, initial=0))
    return Plan(tuple(tops[:-1]), dict.fromkeys(problem.scopes, tops[-1]), lower_bounds(problem))


def with_offsets(program: ir.Program, problem: ArenaProblem, plan: Plan) -> ir.Program:
    """The program with its values and scratchpads where ``plan`` puts the items of its problem."""
    values, steps = list(program.values), list(program.steps)
    count = len(problem.values)
    base = dict(zip(problem.values, plan.offsets[:count], strict=True))
    for number, value in enumerate(program.values):
        root = program.root(number)
        if value.alias_of < 0 and root in base:
            values[number] = replace(value, offset=base[root])
        elif value.kind == "local" and value.alias_of < 0:
            values[number] = replace(value, offset=0)
    for at, offset in zip(problem.scratchpads, plan.offsets[count:], strict=True):
        steps[at] = replace(steps[at], scratchpad_offset=offset)
    steps = [step if step.scratchpad_bytes > 0 else replace(step, scratchpad_offset=0) for step in steps]
    return replace(program, values=tuple(values), steps=tuple(steps), arena_bytes=plan.height)


@tvm.transform.module_pass(opt_level=0, name="PlanMemory")
class PlanMemory:
    """Module pass; see the module's text.

    Parameters
    ----------
    reuse : whether values that are not alive together share bytes.
    reorder : whether steps may be reordered for a smaller arena.
    journal : is told of the plans.
    """

    def __init__(
        self,
        backend: Backend,
        reuse: bool = True,
        reorder: bool = False,
        journal: Journal | None = None,
    ) -> None:
        self.backend = backend
        self.reuse = reuse
        self.reorder = reorder
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        def plan(program: ir.Program) -> ir.Program:
            planned = plan_memory(program, self.backend, self.reuse, self.reorder)
            if planned.plan is not None:
                self.journal.place(program.name, planned.plan)
            return planned.program

        return map_programs(mod, self.backend.name, plan).mod
