"""The types of all regions of a library, which may have to share a budget of errors.

    roundings   squares of their errors add up                 sqrt(sum)
    algorithms  their errors add up; reserved beforehand       + sum   <= max_relative_error

Pairs of convolutions are taken apart to be weighed, and those of which both parts stay in float32 are put
together again, until nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.assignment import Assignment, AssignmentProblem, NoAssignment, solve_assignment
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.core.shared_budget import least_spending, solve_within
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from ..costs.source import CostSource
from ..dispatch.choose_algorithms import ColdCosts, margin_of
from ..dispatch.convolutions import candidates_of, wanted_others
from ..layout.queries import StepQueries
from .choose_types import TypeChoice, TypeChooser
from .constants import Constants, is_beyond
from .split_pairs import parts_of, split_pairs
from .wishes import Names, PrecisionWish, fixed_types


@dataclass
class OpenRegion:
    """A region whose types are open.

    Attributes
    ----------
    whole : its program, with pairs of convolutions as they are.
    names : of the operators in its steps.
    constants : of ``whole``.
    kept : pairs that are not taken apart.
    """

    whole: ir.Program
    names: Names
    constants: Constants
    kept: set[str] = field(default_factory=set)

    def keep_float_pairs(self, program: ir.Program, choice: TypeChoice) -> bool:
        """Note pairs of which both parts are in float32; returns whether there are new ones."""
        types = {step.name: chosen for step, chosen in zip(program.steps, choice.types, strict=True)}
        pairs = {step.name for step in self.whole.steps if step.has_depthwise} - self.kept
        found = {name for name in pairs if all(types[part].is_float for part in parts_of(name))}
        self.kept |= found
        return bool(found)


@dataclass
class TypeDecider:
    """Decides on the types of regions; see the module's text.

    Parameters
    ----------
    short : the type that is wanted beside float32.
    cost : what steps cost in given layouts and types.
    spent : the square of the error that roundings of other regions add.
    """

    backend: Backend
    wish: PrecisionWish
    short: str
    cost: CostSource
    spent: float = 0.0

    def __post_init__(self) -> None:
        self._queries = StepQueries(self.backend)

    def decide(self, regions: Sequence[OpenRegion]) -> list[tuple[ir.Program, TypeChoice]]:
        """Types for each region's program, in which pairs are taken apart as far as that is of use."""
        while True:
            programs = [split_pairs(region.whole, region.kept) for region in regions]
            choices = self._choose([self._chooser(*one) for one in zip(programs, regions, strict=True)])
            decided = list(zip(programs, choices, strict=True))
            pairs = zip(regions, decided, strict=True)
            changed = [region.keep_float_pairs(*one) for region, one in pairs]
            if not any(changed):
                return decided

    def _chooser(self, program: ir.Program, region: OpenRegion) -> TypeChooser:
        return TypeChooser(
            typical(program),
            self._queries,
            self.cost,
            self.backend.layout_rules,
            self.short,
            fixed_types(program, self.wish, region.names),
            lambda root: region.constants.are_finite(program, root),
            lambda number: is_beyond(number, self.short),
            lambda root: region.constants.rounded(program, root),
            self._others,
        )

    def _choose(self, choosers: Sequence[TypeChooser]) -> list[TypeChoice]:
        try:
            problems = [chooser.problem() for chooser in choosers]
        except UnsupportedError as error:
            raise InvalidInputError(f"option precision_for: {error}") from None
        unbounded: list[Assignment | None] = [None] * len(problems)
        budget = math.inf
        if self.wish.is_bounded:
            reserved = sum(chooser.reserved for chooser in choosers)
            left = max(0.0, self.wish.max_relative_error - reserved)
            budget = max(0.0, left**2 - self.spent)
            unbounded = [solve_assignment(problem) for problem in problems]
        found = self._within(problems, budget)
        rows = zip(choosers, problems, found, unbounded, strict=True)
        return [chooser.chosen(*row) for chooser, *row in rows]

    def _within(self, problems: Sequence[AssignmentProblem], budget: float) -> list[Assignment]:
        try:
            return solve_within(problems, budget)
        except NoAssignment:
            least = math.sqrt(self.spent + least_spending(problems))
            limit = self.wish.max_relative_error
            raise InvalidInputError(
                f"option precision_for: what it asks for adds an error of {least:.1e}, and "
                f"max_relative_error={limit:.1e} does not reach for it; raise it, or ask for less"
            ) from None

    def _others(self, alone: ir.Program) -> Iterator[tuple[float, float]]:
        """Costs and errors of the algorithms that a convolution may get in place of the direct sum."""
        (step,) = alone.steps
        if isinstance(step.attrs, ir.Convolution | ir.Deconvolution) and self.wish.rule != "direct":
            costs = ColdCosts(self.cost)
            found = candidates_of(alone, step, self._queries, costs, self.backend.layout_rules)
            for option in wanted_others(found, self.wish.rule, margin_of(self.cost)):
                if option.cost_us is not None:
                    yield option.cost_us, option.relative_error
