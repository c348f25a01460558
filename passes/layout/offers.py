"""The library's candidates for a step, with their costs, and the lines about them in reports.

A step's own reference implementation is offered only where nothing else exists.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm_mxplan.core.decisions.dispatch import Candidate, Source
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts

from ..costs.movement import concat_cost, slice_cost
from ..costs.source import CostSource
from .candidates import RulesOf, is_stored_alike, options_of
from .queries import StepQueries


@dataclass(frozen=True)
class Offer:
    """A candidate that the library can make; its step prefers the implementation that is fastest there."""

    step: ir.Step
    layouts: Layouts
    cost: float
    info: StepInfo


class Offers:
    """Candidates of one program's steps, with costs.

    Parameters
    ----------
    rules : of the libraries that run the steps.
    """

    def __init__(self, program: ir.Program, queries: StepQueries, cost: CostSource, rules: RulesOf) -> None:
        self.program = program
        self.queries = queries
        self.cost = cost
        self.rules = rules
        self._writers = {value: step for step in program.steps for value in step.results}

    def usable(self, step: ir.Step, forced: Layouts | None = None) -> tuple[list[Offer], list[Candidate]]:
        """Returns the offers to choose from, maybe none, and the candidates that are out before any choice.

        Parameters
        ----------
        forced : the only layouts to offer.
        """
        fast: list[Offer] = []
        slow: list[Offer] = []
        out: list[Candidate] = []
        for layouts in [forced] if forced else options_of(self.program, step, self.rules(step)):
            variant, info = self.queries.fastest(self.program, step, layouts, self.cost)
            if info.error:
                out.append(self._told(step, layouts, info, None, info.error))
                continue
            offer = Offer(variant, layouts, self._step_cost(variant, layouts, info), info)
            (slow if info.is_reference else fast).append(offer)
        if fast:
            reason = "reference code, refused where there is other code"
            out += [self.candidate(one, reason) for one in slow]
        return fast or slow, out

    def as_it_is(self, step: ir.Step, layouts: Layouts) -> Offer:
        """``step`` as the library runs it in ``layouts``, whatever else there is."""
        info = self.queries.ask(self.program, step, layouts)
        return Offer(step, layouts, self._step_cost(step, layouts, info), info)

    def candidate(self, offer: Offer, out: str) -> Candidate:
        """``offer`` for a report; ``out`` says why it was not taken."""
        return self._told(offer.step, offer.layouts, offer.info, offer.cost, out)

    def _told(
        self, step: ir.Step, layouts: Layouts, info: StepInfo, cost: float | None, out: str
    ) -> Candidate:
        images = zip(operands_of(step), layouts, strict=True)
        return Candidate(
            implementation=info.implementation,
            layouts=tuple(layout for (role, _), layout in images if role in ("src", "dst")),
            algorithm=step.attrs.algorithm
            if isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
            else "",
            cost_us=None if cost is None else round(cost, 2),
            source="" if cost is None else self._source(step, layouts),
            relative_error=info.relative_error,
            scratchpad_bytes=max(info.scratchpad_bytes, 0),
            refused=info.refused,
            # Questions are about steps without names.
            out=out.removeprefix(f"{step.kind} : "),
        )

    def _source(self, step: ir.Step, layouts: Layouts) -> Source:
        return "measured" if self.cost.knows(self.program, step, layouts) else "model"

    def _step_cost(self, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        if is_stored_alike(self.program, step, layouts):
            return 0.0
        if isinstance(step.attrs, ir.Concat):
            return concat_cost(self.program, self._writers, step, layouts, self.cost)
        if isinstance(step.attrs, ir.Slice):
            return slice_cost(self.program, step, layouts, self.cost)
        return self.cost(self.program, step, layouts, info)


def why_not(offer: Offer, taken: Offer, why: str) -> str:
    """Returns the reason against ``offer``, '' if it was taken; ``why`` is for one that costs less alone."""
    if offer is taken:
        return ""
    more = round(offer.cost - taken.cost, 1)
    if more < 0:
        return f"costs {-more} us less alone, but {why}"
    return f"costs {more} us more" if more else "costs as much"
