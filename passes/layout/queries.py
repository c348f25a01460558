"""Asking the backend about one step in given layouts, each question once; which implementation is fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of, with_operands
from tvm_mxplan.core.step_facts import Layouts, StepFacts

from ..costs.source import StepCost

_MARGIN = 0.97
"""Share of the cost of the library's first choice that another implementation has to stay below."""


class StepQueries:
    """Answers of one backend by step and layouts; equal steps of a model share one answer."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._answers: dict[ir.Program, StepInfo] = {}
        self._settled: dict[ir.Program, Layouts | None] = {}
        self._places: dict[ir.Program, bool] = {}

    def ask(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> StepInfo:
        """Returns the library's answer about ``step`` with its operands in ``layouts``."""
        question = single_step_program(program, step, layouts)
        if question not in self._answers:
            self._answers[question] = self._backend.describe(question).steps[0]
        return self._answers[question]

    def fastest(
        self, program: ir.Program, step: ir.Step, layouts: Layouts, cost: StepCost
    ) -> tuple[ir.Step, StepInfo]:
        """``step`` with the implementation that it had best prefer, and what the library says of it then.

        Those that the model gives more than the library's first choice are not tried.
        """
        first = self.ask(program, step, layouts)
        found = step
        if first.alternatives:
            least = _MARGIN * cost(program, step, layouts, first)
            bound = cost.modelled(program, step, layouts, first)
            for name in first.alternatives:
                variant, guess = preferring(step, name), first.running(self._backend.implementation(name))
                if cost.modelled(program, variant, layouts, guess) > bound:
                    continue
                spent = cost(program, variant, layouts, guess)
                if spent < least:
                    found, least = variant, spent
        return found, self.ask(program, found, layouts)

    def converting(self, facts: StepFacts) -> StepFacts:
        """The facts of a conversion alone, with the implementation that the library has for it."""
        (step,) = facts.program.steps
        return replace(facts, info=self.ask(facts.program, step, facts.layouts))

    def settle(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> Layouts | None:
        """``layouts`` with every ``any`` as the library picks it; None if it has no name for its pick."""
        question = single_step_program(program, step, layouts)
        if question not in self._settled:
            description = self._backend.describe(question)
            settled = tuple(description.values[value].layout for _, value in operands_of(question.steps[0]))
            known = not description.steps[0].error and not {"any", "opaque"} & set(settled)
            self._settled[question] = settled if known else None
        return self._settled[question]

    def has_place(self, program: ir.Program, value: ir.Value, layout: str) -> bool:
        """Whether the library knows where elements of the shape of ``value`` stand in ``layout``.

        It is asked about float32; types that the library lacks stand in the same places.
        """
        seen = ir.Value("", value.shape, "float32", "input", layout, 0)
        question = ir.Program("", (seen,), (), program.symbols)
        if question not in self._places:
            self._places[question] = self._backend.describe(question).values[0].nbytes >= 0
        return self._places[question]


def preferring(step: ir.Step, implementation: str) -> ir.Step:
    """The convolution ``step`` by the library's implementation of that name; '' is its own choice."""
    assert isinstance(step.attrs, ir.Convolution)
    return replace(step, attrs=replace(step.attrs, preferred=implementation))


def with_preferences(program: ir.Program, steps: Sequence[ir.Step]) -> ir.Program:
    """``program`` with the implementations that ``steps``, which are its own, prefer."""
    preferred = tuple(
        replace(step, attrs=chosen.attrs) if isinstance(chosen.attrs, ir.Convolution) else step
        for step, chosen in zip(program.steps, steps, strict=True)
    )
    return replace(program, steps=preferred)


def single_step_program(program: ir.Program, step: ir.Step, layouts: Layouts) -> ir.Program:
    """``step`` alone: what it reads are inputs (or constants), what it writes is a local.

    Names are left out, so that equal steps give equal programs.
    """
    values: list[ir.Value] = []
    numbers: dict[tuple[int, str], int] = {}
    for (role, old), layout in zip(operands_of(step), layouts, strict=True):
        if (old, layout) in numbers:
            continue
        value = program.values[old]
        constant = program.values[program.root(old)].kind == "constant"
        kind: ir.ValueKind = "local" if role in ir.RESULT_ROLES else "constant" if constant else "input"
        index = -1 if kind == "local" else sum(other.kind == kind for other in values)
        numbers[old, layout] = len(values)
        values.append(ir.Value("", value.shape, value.dtype, kind, layout, index))
    ids = [numbers[old, layout] for (_, old), layout in zip(operands_of(step), layouts, strict=True)]
    single = with_operands(ir.Step("", step.attrs, step.operands, step.post_ops, library=step.library), ids)
    return ir.Program("", tuple(values), (single,), program.symbols)
