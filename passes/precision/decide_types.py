"""The types of all regions of a library, which may have to share a budget of errors.

    roundings   squares of their errors add up                 sqrt(sum)
    algorithms  their errors add up; reserved beforehand       + sum   <= max_relative_error

Of types that cost as little, those that round least are chosen: a value that is written for one reader, as
the sum in front of a norm, stays in float32 where that is all but free.

A looser bound never leads to types that cost more (``cheapest_within``), by the same estimates.

Pairs of convolutions are taken apart to be weighed, and those of which both parts stay in float32 are put
together again, until nothing changes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.assignment import Assignment, AssignmentProblem, Option, solve_assignment
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.core.shared_budget import cheapest_within, solve_within, spending_of, thriftiest_of_cheap
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from ..costs.source import CostSource
from ..dispatch.choose_algorithms import ColdCosts, margin_of
from ..dispatch.convolutions import candidates_of, wanted_others
from ..layout.queries import StepQueries
from .choose_types import TypeChoice, TypeChooser
from .constants import Constants, is_beyond
from .rounding import rounding
from .split_pairs import parts_of, split_pairs
from .wishes import Names, PrecisionWish, fixed_types

_AS_CHEAP = 2e-3
"""Share by which types may cost more than the least where they round less; estimates are off by more."""


@dataclass
class OpenRegion:
    """A region whose types are open.

    Attributes
    ----------
    whole : its program, with pairs of convolutions as they are.
    names : of the operators in its steps.
    constants : of ``whole``.
    """

    whole: ir.Program
    names: Names
    constants: Constants


class _Decided(NamedTuple):
    """Programs and their types, which cost and spend as a whole."""

    regions: tuple[tuple[ir.Program, TypeChoice], ...]

    @property
    def cost(self) -> float:
        return sum(choice.cost_us for _, choice in self.regions)

    @property
    def spent(self) -> float:
        return sum(choice.spent for _, choice in self.regions)


class _Posed(NamedTuple):
    """Choices of each region, and those that are made where nothing bounds the errors."""

    programs: list[ir.Program]
    choosers: list[TypeChooser]
    problems: list[AssignmentProblem]
    free: list[Assignment | None]


def _float_pairs(whole: ir.Program, program: ir.Program, choice: TypeChoice) -> set[str]:
    """Pairs of which both parts are in float32."""
    types = {step.name: chosen for step, chosen in zip(program.steps, choice.types, strict=True)}
    pairs = {step.name for step in whole.steps if step.has_depthwise}
    apart = {name for name in pairs if parts_of(name)[1] in types}
    return {name for name in apart if all(types[part].is_float for part in parts_of(name))}


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
        self._posed: dict[tuple[frozenset[str], ...], _Posed] = {}

    def decide(self, regions: Sequence[OpenRegion]) -> list[tuple[ir.Program, TypeChoice]]:
        """Types for each region's program, in which pairs are taken apart as far as that is of use."""
        if not self.wish.is_bounded:
            return list(self._decided(regions, math.inf).regions)
        posed = self._pose(regions, [frozenset[str]()] * len(regions))
        reserved = sum(chooser.reserved for chooser in posed.choosers)
        left = max(0.0, self.wish.max_relative_error - reserved)
        budget = max(0.0, left**2 - self.spent)
        spending = spending_of(posed.problems)
        if spending.least > budget:
            least, limit = math.sqrt(self.spent + spending.least), self.wish.max_relative_error
            raise InvalidInputError(
                f"option precision_for: what it asks for adds an error of {least:.1e}, and "
                f"max_relative_error={limit:.1e} does not reach for it; raise it, or ask for less"
            )
        found = cheapest_within(lambda limit: self._decided(regions, limit), budget, spending)
        return list(found.regions)

    def _decided(self, regions: Sequence[OpenRegion], budget: float) -> _Decided:
        """The types of all regions that spend ``budget`` at most together."""
        kept: list[set[str]] = [set() for _ in regions]
        while True:
            posed = self._pose(regions, kept)
            decided = tuple(zip(posed.programs, self._choose(posed, budget), strict=True))
            found = [_float_pairs(region.whole, *one) for region, one in zip(regions, decided, strict=True)]
            if not any(found):
                return _Decided(decided)
            kept = [own | more for own, more in zip(kept, found, strict=True)]

    def _pose(self, regions: Sequence[OpenRegion], kept: Sequence[Collection[str]]) -> _Posed:
        """The problems of regions with these pairs as one step; each is posed once."""
        key = tuple(frozenset(own) for own in kept)
        if key not in self._posed:
            programs = [split_pairs(region.whole, own) for region, own in zip(regions, kept, strict=True)]
            choosers = [self._chooser(*one) for one in zip(programs, regions, strict=True)]
            try:
                problems = [chooser.problem() for chooser in choosers]
            except UnsupportedError as error:
                raise InvalidInputError(f"option precision_for: {error}") from None
            free = [solve_assignment(one) if self.wish.is_bounded else None for one in problems]
            self._posed[key] = _Posed(programs, choosers, problems, free)
        return self._posed[key]

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

    def _choose(self, posed: _Posed, budget: float) -> list[TypeChoice]:
        if math.isinf(budget):
            found = [
                thriftiest_of_cheap(problem, self._for_readers(problem), _AS_CHEAP)
                for problem in posed.problems
            ]
        else:
            found = solve_within(posed.problems, budget)
        rows = zip(posed.choosers, posed.problems, found, posed.free, strict=True)
        return [chooser.chosen(problem, one, free) for chooser, problem, one, free in rows]

    def _for_readers(self, problem: AssignmentProblem) -> AssignmentProblem:
        """The problem where what is written in the shorter type spends once for each of its readers.

        A cast is one reader's, as the product's behind a norm; what the next residual adds is not rounded.
        """
        readers = Counter(
            value
            for options in problem.steps
            for value in {value for option in options for value, _ in option.wants}
        )
        one = rounding(self.short)

        def seen(option: Option) -> Option:
            more = sum(readers[value] - 1 for value, form in option.gives if form == self.short)
            return replace(option, spends=option.spends + max(0, more) * one)

        return replace(problem, steps=tuple(tuple(map(seen, options)) for options in problem.steps))

    def _others(self, alone: ir.Program) -> Iterator[tuple[float, float]]:
        """Costs and errors of the algorithms that a convolution may get in place of the direct sum."""
        (step,) = alone.steps
        if isinstance(step.attrs, ir.Convolution | ir.Deconvolution) and self.wish.rule != "direct":
            costs = ColdCosts(self.cost)
            found = candidates_of(alone, step, self._queries, costs, self.backend.layout_rules)
            for option in wanted_others(found, self.wish.rule, margin_of(self.cost)):
                if option.cost_us is not None:
                    yield option.cost_us, option.relative_error
