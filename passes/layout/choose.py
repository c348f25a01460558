"""The choice of layouts for a whole region: candidates and costs become an assignment problem.

    every step      its candidates, with their costs
    every view      wants what it views as it was declared
    every output    wants its value plain
    every value     converts into any form that someone wants, at the cost of a reorder

Forms that store a value's bytes in the same order are one form.  A step's own reference implementation is
offered only where nothing else exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.assignment import Assignment, AssignmentProblem, Form, Option, solve_assignment
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout import plain_layout, same_bytes
from tvm_mxplan.errors import UnsupportedError

from .candidates import Layouts, operands_of, options_of
from .costs import Machine, StepCost, reorder_cost
from .movement_costs import concat_cost, slice_cost
from .queries import StepQueries


def choose_by_cost(
    program: ir.Program,
    queries: StepQueries,
    cost: StepCost,
    block: int,
    machine: Machine,
    forced: Mapping[str, Layouts],
) -> tuple[list[Layouts], Assignment]:
    """Layouts of every step's operands with the least cost over the whole region, and the proof.

    Parameters
    ----------
    forced : layouts of single steps by name, the only candidates for these.
    """
    return _Chooser(program, queries, cost, block, machine, forced).choose()


class _Chooser:
    def __init__(
        self,
        program: ir.Program,
        queries: StepQueries,
        cost: StepCost,
        block: int,
        machine: Machine,
        forced: Mapping[str, Layouts],
    ) -> None:
        self.program = program
        self.queries = queries
        self.cost = cost
        self.block = block
        self.machine = machine
        self.forced = forced
        self.forms: dict[int, list[str]] = {}
        self.writers = {step.dst: step for step in program.steps}

    def choose(self) -> tuple[list[Layouts], Assignment]:
        candidates = [self._usable(step) for step in self.program.steps]
        steps = [
            tuple(self._option(step, layouts, cost) for layouts, cost in usable)
            for step, usable in zip(self.program.steps, candidates, strict=True)
        ]
        steps += self._fixed()
        problem = AssignmentProblem(tuple(steps), self._conversions(steps))
        assignment = solve_assignment(problem)
        chosen = [usable[choice][0] for usable, choice in zip(candidates, assignment.choices, strict=False)]
        return chosen, assignment

    def _usable(self, step: ir.Step) -> list[tuple[Layouts, float]]:
        """Candidates that the library can make, with costs; reference code only if there is nothing else."""
        fast, slow, reasons = [], [], []
        forced = self.forced.get(step.name)
        for layouts in [forced] if forced else options_of(self.program, step, self.block):
            variant, info = self.queries.fastest(self.program, step, layouts, self.cost)
            if info.error:
                reasons.append(info.error)
                continue
            cost = self._step_cost(variant, layouts, info)
            (slow if info.is_reference else fast).append((layouts, cost))
        if not fast and not slow:
            raise UnsupportedError(f"{step.name}: {'; '.join(dict.fromkeys(reasons))}")
        return fast or slow

    def _step_cost(self, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        if isinstance(step.attrs, ir.Concat):
            return concat_cost(self.program, self.writers, step, layouts, self.machine)
        if isinstance(step.attrs, ir.Slice):
            return slice_cost(self.program, step, layouts, self.machine)
        return self.cost(self.program, step, layouts, info)

    def _option(self, step: ir.Step, layouts: Layouts, cost: float) -> Option:
        wants, gives = [], []
        for (role, value), layout in zip(operands_of(step), layouts, strict=True):
            if role == "dst":
                gives.append(self._form(value, layout))
            elif self.program.values[self.program.root(value)].kind != "constant":
                wants.append(self._form(value, layout))
        return Option(cost, tuple(dict.fromkeys(wants)), tuple(gives))

    def _fixed(self) -> list[tuple[Option, ...]]:
        """Inputs are given as declared; views want their base so; outputs want to be plain."""
        steps = []
        written = {step.dst for step in self.program.steps}
        for number, value in enumerate(self.program.values):
            declared = self._form(number, value.layout)
            shown = self.program.values[self.program.root(number)].kind == "output"
            if value.kind == "input":
                steps.append((Option(0.0, (), (declared,)),))
            elif number in written:
                if value.kind == "output" or (shown and value.alias_of >= 0):
                    steps.append((Option(0.0, (self._form(number, plain_layout(len(value.shape))),), ()),))
            elif value.alias_of >= 0 and self._is_activation(number):
                base = self._form(value.alias_of, self.program.values[value.alias_of].layout)
                steps.append((Option(0.0, (base,), (declared,)),))
        return steps

    def _is_activation(self, value: int) -> bool:
        return self.program.values[self.program.root(value)].kind in ("local", "input")

    def _form(self, value: int, layout: str) -> Form:
        """The value and the first layout met for it that stores the same bytes."""
        known = self.forms.setdefault(value, [])
        for other in known:
            if same_bytes(other, layout, self.program.values[value].shape):
                return (value, other)
        known.append(layout)
        return (value, layout)

    def _conversions(self, steps: list[tuple[Option, ...]]) -> dict[Form, float]:
        wanted = {form for options in steps for option in options for form in option.wants}
        return {form: self._conversion_cost(*form) for form in sorted(wanted)}

    def _conversion_cost(self, value: int, layout: str) -> float:
        shape = self.program.values[value].shape
        return reorder_cost(shape, plain_layout(len(shape)), layout, self.machine)  # type: ignore[arg-type]
