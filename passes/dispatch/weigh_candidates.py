"""``WeighCandidates``: what steps could have had, where that was not weighed when they were decided.

Before   layouts by a rule, by a plan that was fastest as a whole, or as they were loaded
After    the same, nothing changed; the report has costs of what was taken and of what else there was

Where layouts or algorithms were chosen by cost, their candidates are known and left as they are.  Nothing is
measured: costs are known from measurements, or the model's.
"""

from __future__ import annotations

from dataclasses import replace

import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.dispatch import Candidate
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.policies import Rule
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.core.step_facts import Layouts

from ..costs.source import CostSource
from ..layout.offers import Offers, why_not
from ..layout.queries import StepQueries, preferring
from ..region.attached import program_of, regions
from .choose_algorithms import ColdCosts
from .convolutions import candidates_of

_AS_A_WHOLE = "the plan was chosen as a whole"


@tvm.transform.module_pass(opt_level=0, name="WeighCandidates")
class WeighCandidates:
    """Module pass; see the module's text.

    Parameters
    ----------
    rule : by which algorithms were chosen.
    cost : what steps cost; a source that measures nothing.
    journal : knows how the layouts of regions were decided and what was weighed; is told what was not.
    """

    def __init__(
        self,
        backend: Backend,
        rule: Rule,
        cost: CostSource,
        journal: Journal,
    ) -> None:
        self.backend = backend
        self.rule = rule
        self.cost = cost
        self.journal = journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        queries = StepQueries(self.backend)
        for _, function in regions(mod, self.backend.name):
            program = typical(program_of(function))
            offers = Offers(program, queries, self.cost, self.backend.layout_rules)
            decision = self.journal.layouts[program.name]
            why = _AS_A_WHOLE if decision.replayed else f"option layouts={decision.policy}"
            for step in program.steps:
                if isinstance(step.attrs, ir.Reorder):
                    continue
                known = self.journal.weighed.get(step.name, [])
                found = known
                if isinstance(step.attrs, ir.Convolution | ir.Deconvolution) and not _has_algorithms(known):
                    found = [*self._algorithms(program, step, queries), *known]
                if all(one.out for one in known):
                    found = [*found, *_layouts(offers, step, why)]
                self.journal.weigh({step.name: found})
        return mod

    def _algorithms(self, program: ir.Program, step: ir.Step, queries: StepQueries) -> list[Candidate]:
        """The algorithms that a convolution does not have."""
        assert isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
        cost, rules, chosen = ColdCosts(self.cost), self.backend.layout_rules, step.attrs.algorithm
        every = candidates_of(program, _unbound(step), queries, cost, rules)
        taken = next(one.cost_us for one in every if one.algorithm == chosen)
        why = _AS_A_WHOLE if self.rule == "cost" else f"option convolutions={self.rule}"

        def told(one: Candidate) -> Candidate:
            if one.out:
                return one
            less = taken is not None and one.cost_us is not None and one.cost_us < taken
            reason = f"costs less than {chosen} alone, but {why}" if less else f"costs more than {chosen}"
            return replace(one, out=reason)

        return [told(one) for one in every if one.algorithm != chosen]


def _unbound(step: ir.Step) -> ir.Step:
    """The step without a preference for one of the library's implementations."""
    return preferring(step, "") if isinstance(step.attrs, ir.Convolution) else step


def _has_algorithms(candidates: list[Candidate]) -> bool:
    return any(one.algorithm and not one.layouts for one in candidates)


def _layouts(offers: Offers, step: ir.Step, why: str) -> list[Candidate]:
    """Lists the candidate that ``step`` is, and those that it could have been in other layouts."""
    layouts = _as_laid_out(offers.program, step)
    taken = offers.as_it_is(step, layouts)
    usable, out = offers.usable(_unbound(step))
    own = offers.candidate(taken, "")
    others = [*out, *(offers.candidate(offer, why_not(offer, taken, why)) for offer in usable)]
    is_own = (own.implementation, own.layouts)
    return [own, *(one for one in others if (one.implementation, one.layouts) != is_own)]


def _as_laid_out(program: ir.Program, step: ir.Step) -> Layouts:
    return tuple(program.values[value].layout for _, value in operands_of(step))
