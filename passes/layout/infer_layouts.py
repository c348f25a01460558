"""``InferLayouts``: a physical layout for every value of every region, and the bytes that follow from it.

Before   programs in plain layouts, implementations unknown
After    programs with layouts, reorders where layouts meet, implementations, padded bytes, scratchpads

The backend is asked which implementation it would run for each candidate; reference implementations are
refused unless nothing else exists.  Symbolic shapes are decided on at typical numbers.  Inputs and outputs
stay plain, but the choice reckons with ``PropagateLayouts``, which lets them cross in other layouts.  Regions
of a function whose state changes are one choice by cost (``together``).  Where buffers stand is
``PlanMemory``'s work.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import tvm

from tvm_mxplan.byoc.backend import Backend, directly
from tvm_mxplan.core.decisions.choices import Choices, Question
from tvm_mxplan.core.decisions.dispatch import Weighed
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.layout.layout_decision import LayoutDecision
from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.errors import InvalidInputError

from ..borders.neighbours import Neighbours
from ..costs.model import cost_or_model
from ..costs.source import CostSource
from ..region.annotate import annotate
from ..region.attached import carries_program, map_programs, program_of, regions
from .apply import apply_layouts
from .choose import LayoutChoice, LayoutChooser
from .greedy import choose_greedily
from .overrides import forced_layouts
from .queries import StepQueries, with_preferences
from .together import Together


class LaidOut(NamedTuple):
    """A program with layouts, what is to be said about the choice, and its steps' candidates by name."""

    program: ir.Program
    decision: LayoutDecision
    weighed: Weighed


def infer_layouts(
    program: ir.Program,
    backend: Backend,
    policy: Policy = "cost",
    cost: CostSource | None = None,
    layers: Mapping[str, str] = MappingProxyType({}),
    assumed: ir.Program | None = None,
    known: LayoutChoice | None = None,
) -> LaidOut:
    """Layouts for one program; see the module's text.

    Parameters
    ----------
    assumed : the program as ``Neighbours`` lets it see its borders, for the choice alone.
    known : the choice, where it was made for more than this program.

    Raises
    ------
    UnsupportedError : no candidate of some step can be made by the backend.
    InvalidInputError : a step cannot run in the layout that ``layers`` gives it.
    """
    start = time.perf_counter()
    if known is None:
        seen = typical(program if assumed is None else assumed)
        choice, forced = _choose(seen, backend, policy, cost_or_model(cost, backend), layers)
    else:
        choice, forced = known, tuple(step.name for step in program.steps if step.name in layers)
    program = with_preferences(program, choice.steps)
    hops = backend.shares.hops if backend.shares else directly
    naive = policy == "naive"
    applied = apply_layouts(program, choice.layouts, views=choice.views, back_to_plain=naive, hops=hops)
    laid_out = annotate(applied, backend)
    decision = LayoutDecision(policy, round(time.perf_counter() - start, 3), forced=forced)
    if choice.assignment is not None:
        proof = choice.assignment
        decision = replace(decision, cost_us=proof.cost, lower_bound_us=proof.lower_bound)
    return LaidOut(laid_out, decision, choice.weighed)


def _choose(
    program: ir.Program, backend: Backend, policy: Policy, cost: CostSource, layers: Mapping[str, str]
) -> tuple[LayoutChoice, tuple[str, ...]]:
    """Layouts of every step's operands, and the steps that were forced."""
    queries = StepQueries(backend)
    forced = forced_layouts(program, layers, queries, backend.layout_rules)
    if policy != "cost":
        greedy = choose_greedily(program, queries, policy, backend.layout_rules, forced)
        return LayoutChoice(program.steps, greedy, None, {}), tuple(forced)
    return LayoutChooser(program, queries, cost, backend.layout_rules, forced).choose(), tuple(forced)


@tvm.transform.module_pass(opt_level=0, name="InferLayouts")
class InferLayouts:
    """Module pass; see the module's text.

    Parameters
    ----------
    backend : whose regions to lay out.
    policy : ``cost`` for the whole region at once, or one of those in ``greedy``.
    cost : what steps cost: a model, or a ``StepTimer``.
    layers : layouts of single steps, by their names.
    choices : what was decided earlier is taken from it, what is decided here is noted in it.
    journal : is told what was decided and weighed, and why regions went back to TVM.
    """

    def __init__(
        self,
        backend: Backend,
        policy: Policy = "cost",
        cost: CostSource | None = None,
        layers: Mapping[str, str] = MappingProxyType({}),
        choices: Choices | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.backend = backend
        self.policy = policy
        self.cost = cost_or_model(cost, backend)
        self.layers = layers
        self.choices = Choices() if choices is None else choices
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        neighbours = Neighbours(mod, self.backend.name)
        together = Together(mod, self.backend, self.cost, self.layers) if self.policy == "cost" else None

        def infer(program: ir.Program) -> ir.Program:
            assumed = program if self.policy == "naive" else neighbours.seen_by(program)
            laid_out, decision, weighed = self._infer(program, assumed, together)
            self.journal.lay_out(program.name, decision)
            self.journal.weigh_more(weighed)
            neighbours.chosen(laid_out)
            return laid_out

        mod, refused = map_programs(mod, self.backend.name, infer)
        self.journal.refuse(refused)
        taken = {name for decision in self.journal.layouts.values() for name in decision.forced}
        taken |= self._steps_of_others(mod) if self.layers else set()
        for name in self.layers:
            if name not in taken:
                raise InvalidInputError(
                    f"option layers: {name} is no step of the library's own: it is fused into another step, "
                    "or left to TVM; the report says which"
                )
        return mod

    def _steps_of_others(self, mod: tvm.IRModule) -> set[str]:
        """Names of the steps in regions of other libraries, which say themselves what they take."""
        own = {gvar for gvar, _ in regions(mod, self.backend.name)}
        others = [f for gvar, f in mod.functions.items() if gvar not in own and carries_program(f)]
        return {step.name for function in others for step in program_of(function).steps}

    def _infer(self, program: ir.Program, assumed: ir.Program, together: Together | None) -> LaidOut:
        """Returns the earlier choice if one is known and the library still runs it so, else a new one."""
        start = time.perf_counter()
        given = codec.encode(replace(assumed, name=""))
        question = Question("layouts", program, given if together is None else together.given(program, given))
        known = self.choices.find(question)
        if known is not None and annotate(known, self.backend) == known:
            self.choices.note(question, known, known=True)
            steps = {step.name for step in program.steps}
            forced = tuple(name for name in self.layers if name in steps)
            seconds = round(time.perf_counter() - start, 3)
            return LaidOut(known, LayoutDecision(self.policy, seconds, forced=forced, replayed=True), {})
        choice = None if together is None else together.choice_of(program)
        decided = infer_layouts(program, self.backend, self.policy, self.cost, self.layers, assumed, choice)
        self.choices.note(question, decided.program)
        return decided
