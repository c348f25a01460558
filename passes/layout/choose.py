"""The choice of layouts for a whole region: candidates and costs become an assignment problem.

    every step      its candidates, with their costs
    every view      shows what it views in any of its forms that a layout says, or as it was declared
    every output    wants its value plain
    every value     converts into any form that someone wants, at the cost of a reorder
    every weight    that changes stands in any form, which its gradient shares (``stored_weights``)

A reorder of an image in the middle has to gain more than costs are known to; see ``settle_assignment``.
Forms that store a value's bytes in the same order are one form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tvm_mxplan.core.assignment import Assignment, AssignmentProblem, Form, Option, settle_assignment
from tvm_mxplan.core.decisions.dispatch import Candidate, Weighed
from tvm_mxplan.core.layout.layout import plain_layout, same_bytes
from tvm_mxplan.core.layout.views import Seen, layout_through
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts
from tvm_mxplan.errors import UnsupportedError

from ..borders.state_programs import reads_any_form
from ..costs.source import CostSource, Reader
from .candidates import RulesOf
from .offers import Offer, Offers, why_not
from .queries import StepQueries
from .stored_weights import StoredWeights

# Less than that, of a region's time, is the error of costs: no reason for a reorder in the middle.
_MARGIN = 0.02
_WHY = "more with the reorders around it"


@dataclass(frozen=True)
class LayoutChoice:
    """The choice made for a program.

    Attributes
    ----------
    steps : with the implementations that they prefer.
    layouts : of the operands of every step.
    assignment : the proof; None where costs were not weighed.
    weighed : every candidate of every step, by the steps' names.
    views : for each view the layout in which it wants what it views.
    """

    steps: Sequence[ir.Step]
    layouts: Sequence[Layouts]
    assignment: Assignment | None
    weighed: Weighed
    views: Mapping[int, str] = field(default_factory=dict)


@dataclass
class LayoutChooser:
    """Layouts of every step's operands with the least cost over the whole region; see the module's text.

    Parameters
    ----------
    forced : layouts of single steps by name, the only candidates for these.
    gradients : of weights that a function changes, inputs, the outputs that are their gradients.
    """

    program: ir.Program
    queries: StepQueries
    cost: CostSource
    rules: RulesOf
    forced: Mapping[str, Layouts]
    gradients: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights = StoredWeights(self.program, self.queries, self.cost, self.gradients)
        self.forms: dict[int, list[str]] = {}
        self.readers: dict[Form, Reader] = {}

    def choose(self) -> LayoutChoice:
        """The choice; UnsupportedError where the library can make no candidate of some step."""
        offers = Offers(self.program, self.queries, self.cost, self.rules)
        found = [self._usable(offers, step) for step in self.program.steps]
        steps = [
            tuple(self._option(step, offer.layouts, offer.cost) for offer in usable)
            for step, (usable, _) in zip(self.program.steps, found, strict=True)
        ]
        steps += [*self._fixed(), *self.weights.updates()]
        views = self._views(steps)
        steps += views.values()
        problem = AssignmentProblem(tuple(steps), self._conversions(steps))
        assignment = settle_assignment(problem, self._inside(problem), _MARGIN)
        # Behind the program's steps stand those for its inputs and outputs, then those for views.
        chosen = [usable[at] for (usable, _), at in zip(found, assignment.choices, strict=False)]
        weighed = {
            step.name: [*out, *(offers.candidate(offer, why_not(offer, taken, _WHY)) for offer in usable)]
            for step, (usable, out), taken in zip(self.program.steps, found, chosen, strict=True)
        }
        shown = zip(views.items(), assignment.choices[len(steps) - len(views) :], strict=True)
        return LayoutChoice(
            [offer.step for offer in chosen],
            [offer.layouts for offer in chosen],
            assignment,
            weighed,
            {view: options[at].wants[0][1] for (view, options), at in shown},
        )

    def _usable(self, offers: Offers, step: ir.Step) -> tuple[list[Offer], list[Candidate]]:
        usable, out = offers.usable(step, self.forced.get(step.name))
        if not usable:
            raise UnsupportedError(f"{step.name}: {'; '.join(dict.fromkeys(one.out for one in out))}")
        return usable, out

    def _option(self, step: ir.Step, layouts: Layouts, cost: float) -> Option:
        wants: list[Form] = []
        gives: list[Form] = []
        for at, ((role, value), layout) in enumerate(zip(operands_of(step), layouts, strict=True)):
            if self.weights.holds(value):
                if reads_any_form(step, value):
                    continue
                (gives if role in ir.RESULT_ROLES else wants).append(self.weights.form(step, layouts, at))
            elif role in ir.RESULT_ROLES:
                gives.append(self._form(value, layout))
            elif self.program.values[self.program.root(value)].kind != "constant":
                wants.append(self._form(value, layout))
                self.readers.setdefault(wants[-1], (step, layouts))
        return Option(cost, tuple(dict.fromkeys(wants)), tuple(gives))

    def _fixed(self) -> list[tuple[Option, ...]]:
        """Inputs are given as declared; outputs want to be plain."""
        steps: list[tuple[Option, ...]] = []
        written = self._written()
        for number, value in enumerate(self.program.values):
            if self.weights.holds(number):
                continue
            shown = self.program.values[self.program.root(number)].kind == "output"
            if value.kind == "input":
                steps.append((Option(0.0, (), (self._form(number, value.layout),)),))
            elif number in written and (value.kind == "output" or (shown and value.alias_of >= 0)):
                steps.append((Option(0.0, (self._form(number, plain_layout(len(value.shape))),), ()),))
        return steps

    def _views(self, steps: Sequence[tuple[Option, ...]]) -> dict[int, tuple[Option, ...]]:
        """For each view its options, by the forms that ``steps`` and other views give of what it views."""
        given: dict[int, list[str]] = {}
        for viewed, layout in (form for options in steps for option in options for form in option.gives):
            given.setdefault(viewed, []).append(layout)
        written, views = self._written(), dict[int, tuple[Option, ...]]()
        for number in sorted(range(len(self.program.values)), key=self._depth):
            value = self.program.values[number]
            if value.alias_of < 0 or number in written or not self._is_activation(number):
                continue
            if self.weights.holds(number):
                continue
            base = self.program.values[value.alias_of]
            options = {self._form(value.alias_of, base.layout): self._form(number, value.layout)}
            for layout in given.get(value.alias_of, []) if value.alias_offset == 0 else []:
                found = layout_through(Seen(base.shape, base.layout), Seen(value.shape, value.layout), layout)
                if found is not None and self.queries.has_place(self.program, value, found):
                    options.setdefault((value.alias_of, layout), self._form(number, found))
            views[number] = tuple(Option(0.0, (wanted,), (gives,)) for wanted, gives in options.items())
            given[number] = list(dict.fromkeys(layout for _, layout in options.values()))
        return views

    def _written(self) -> set[int]:
        return {value for step in self.program.steps for value in step.results}

    def _depth(self, value: int) -> int:
        """Number of views between a value and the bytes that it shows."""
        depth = 0
        while self.program.values[value].alias_of >= 0:
            value, depth = self.program.values[value].alias_of, depth + 1
        return depth

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

    def _inside(self, problem: AssignmentProblem) -> set[Form]:
        """Conversions of images that are neither taken from outside nor handed out."""
        images = {
            number
            for number, value in enumerate(self.program.values)
            if value.kind == "local" and any(extent != 1 for extent in value.shape[2:])
        }
        return {form for form in problem.conversions if form[0] in images}

    def _conversions(self, steps: list[tuple[Option, ...]]) -> dict[Form, float]:
        wanted = {form for options in steps for option in options for form in option.wants}
        given: dict[int, list[str]] = {}
        for options in steps:
            for option in sorted(options, key=lambda option: option.cost):
                for value, layout in option.gives:
                    given.setdefault(value, []).append(layout)
        return {form: self._conversion_cost(form, given.get(form[0], [])) for form in sorted(wanted)}

    def _conversion_cost(self, form: Form, given: list[str]) -> float:
        """The cost of a form that was not given, out of one that may have been."""
        value, layout = form
        sources = [other for other in dict.fromkeys(given) if other != layout]
        if self.weights.holds(value):
            return min((self.weights.conversion(value, source, layout) for source in sources), default=0.0)
        return self.cost.reorder(self.program, value, layout, sources, self.readers.get(form))
