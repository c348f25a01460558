"""``Dispatch`` for the report: what each stage decided about an operator, put together.

DispatchOperators    who runs it, and why others do not
fusion               whose step it runs in
ChooseAlgorithms     the algorithms of a convolution, with costs and errors
InferLayouts         the layouts and implementations of a step, with costs
the final program    what the chosen one came to: implementation, layouts, scratchpad, in place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..byoc.backend import Fused
from ..core.decisions.dispatch import Candidate, Dispatch, DispatchDecision, Weighed
from ..core.decisions.origin import Origins
from ..core.program import program as ir
from ..passes.annotations import TVM
from ..passes.dispatch.implementations import Preference

_NO_STEP = "no step of its own: a view, or folded into constants"


@dataclass(frozen=True)
class PlannedRegion:
    """A region as it is lowered, and the steps that others took in."""

    library: str
    program: ir.Program
    fused: Fused


def dispatch_report(
    preference: Preference,
    dispatched: Mapping[str, DispatchDecision],
    regions: Sequence[PlannedRegion],
    weighed: Weighed,
    given_back: Mapping[str, str],
    origins: Mapping[str, Origins] = MappingProxyType({}),
) -> Dispatch:
    """The decisions of a whole model.

    Parameters
    ----------
    dispatched : what ``DispatchOperators`` decided, by the operators' names.
    weighed : candidates of steps, by the steps' names.
    given_back : among others, why regions went back to TVM, by the names of their operators.
    origins : what operators come from, by their names.
    """
    fused = {name: into for region in regions for name, into in region.fused.items()}
    steps = {step.name: (region, step) for region in regions for step in region.program.steps}

    def decide(decision: DispatchDecision) -> DispatchDecision:
        if decision.chosen.backend == TVM:
            return replace(decision, runs="")
        if decision.operator in given_back:
            return _given_back(decision, given_back[decision.operator])
        root = decision.runs or decision.operator
        name = fused.get(root, root)
        if name not in steps:
            name = next((other for other in steps if other.startswith(f"{name}.")), "")
        if not name:
            return replace(decision, runs="", note=_NO_STEP)
        if fused.get(root, root) != decision.operator:
            return replace(decision, runs=name)
        region, step = steps[name]
        own = _candidates(region, step, weighed.get(name, ()))
        runner = step.library or region.library
        others = [
            replace(one, out=one.out or f"{runner} runs its step, which takes less")
            for one in decision.candidates
            if one.backend != runner
        ]
        return replace(decision, runs=decision.operator, candidates=(*own, *others))

    present = tuple(one.name for one in preference.present)
    absent = tuple((one.name, one.absent) for one in preference.implementations if one.absent)
    decisions = (decide(decision) for decision in dispatched.values())
    told = tuple(replace(one, origins=origins.get(one.operator, ())) for one in decisions)
    return Dispatch(present, absent, told)


def _given_back(decision: DispatchDecision, reason: str) -> DispatchDecision:
    """TVM runs it after all: the library could not do what it had taken."""
    candidates = tuple(
        replace(one, out="" if one.backend == TVM else one.out or reason) for one in decision.candidates
    )
    return replace(decision, candidates=candidates, runs="")


def _candidates(region: PlannedRegion, step: ir.Step, weighed: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a library for ``step``, the chosen one as the program has it."""
    chosen = next((one for one in weighed if not one.out), Candidate())
    chosen = replace(
        chosen,
        implementation=step.implementation,
        layouts=_layouts(region.program, step),
        algorithm=step.attrs.algorithm if isinstance(step.attrs, ir.Convolution | ir.Deconvolution) else "",
        scratchpad_bytes=max(step.scratchpad_bytes, 0),
        in_place=_in_place(region.program, step),
    )
    every = [chosen, *(one for one in weighed if one.out)]
    return [replace(one, backend=step.library or region.library) for one in every]


def _layouts(program: ir.Program, step: ir.Step) -> tuple[str, ...]:
    return tuple(
        program.values[operand.value].layout for operand in step.operands if operand.role in ("src", "dst")
    )


def _in_place(program: ir.Program, step: ir.Step) -> bool:
    """True if the step writes over what it reads, or nothing is left for it to do."""
    root = program.root(step.dst)
    return not step.implementation or any(program.root(value) == root for value in program.reads(step))
