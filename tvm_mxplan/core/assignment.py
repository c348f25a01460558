"""Choosing one layout for every edge of a graph: the problem as plain data, and its exact solution.

Each step has options; an option has a cost, wants each value it reads in some form, and gives the value it
writes in some form.  A value that is wanted in another form than it was given in is converted once, at a
cost, however many steps want it.  The sum of all costs is minimised over the whole graph.

    step A  gives v as x (cost 3) or y (cost 2)
    step B  wants v as x (cost 1) or y (cost 4)         v: x -> y or y -> x costs 1

    A as y, convert, B as x: 2 + 1 + 1 = 4       A as x, B as x: 3 + 1 = 4       A as y, B as y: 6

Options and conversions may also spend of a budget that the whole graph has, in a unit of its own: the squares
of rounding errors, say.

Solved as an integer program (``scipy.optimize.milp``, the HiGHS solver): one binary variable for each
option, one for each conversion.  Where it finds nothing in the nodes it may look at, steps
choose one after the other (``assignment_descent``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from .assignment_descent import descended

Form = tuple[int, str]
"""A value and the form it is in."""


class NoAssignment(Exception):
    """Nothing satisfies what the options want, or nothing within the budget was found."""


@dataclass(frozen=True)
class Option:
    """One way to run a step.

    Attributes
    ----------
    cost : any unit, not negative.
    wants : forms of values that are read.
    gives : forms of values that are written.
    spends : of the problem's budget, not negative.
    """

    cost: float
    wants: tuple[Form, ...]
    gives: tuple[Form, ...]
    spends: float = 0.0


@dataclass(frozen=True)
class AssignmentProblem:
    """Steps with their options, and what conversions cost.

    Attributes
    ----------
    steps : options of each step, one or more.
    conversions : cost of making a form of a value out of the one it was given in; forms that are absent
        cannot be made.
    spending : what conversions spend of the budget, not negative; those that are absent spend nothing.
    budget : what all that is chosen may spend.
    """

    steps: tuple[tuple[Option, ...], ...]
    conversions: Mapping[Form, float]
    spending: Mapping[Form, float] = field(default_factory=dict)
    budget: float = math.inf


@dataclass(frozen=True)
class Assignment:
    """The chosen option of each step.

    Attributes
    ----------
    cost : sum over chosen options and the conversions they need.
    lower_bound : no assignment costs less; 0 where the solver found none itself.
    """

    choices: tuple[int, ...]
    cost: float
    lower_bound: float

    @property
    def is_optimal(self) -> bool:
        return self.cost <= self.lower_bound + 1e-6 * max(1.0, abs(self.cost))

    @property
    def is_bounded(self) -> bool:
        """Whether the solver says how far from the least the cost may be."""
        return self.is_optimal or self.lower_bound > 0


def solve_assignment(
    problem: AssignmentProblem, *, max_nodes: int = 2000, gap: float | None = None
) -> Assignment:
    """Cheapest assignment; exact unless ``max_nodes`` of the branch and bound are not enough.

    Where these do not reach for any, and the problem has no budget, it is one that no single step can better.

    Parameters
    ----------
    gap : how much more than the least an assignment may cost, as a share; None leaves it to the solver.

    Raises
    ------
    NoAssignment : none satisfies what the options want, or none within the budget was found.
    """
    if not problem.steps:
        return Assignment((), 0.0, 0.0)
    variables = [(s, o) for s, options in enumerate(problem.steps) for o in range(len(options))]
    column = {variable: i for i, variable in enumerate(variables)}
    conversions = {form: len(variables) + i for i, form in enumerate(problem.conversions)}
    costs = np.array(
        [problem.steps[s][o].cost for s, o in variables] + [problem.conversions[f] for f in conversions]
    )
    rows = _Rows()
    for s, options in enumerate(problem.steps):
        rows.add({column[s, o]: 1.0 for o in range(len(options))}, 1.0, 1.0)
    givers: dict[Form, list[int]] = {}
    for s, o in variables:
        for form in problem.steps[s][o].gives:
            givers.setdefault(form, []).append(column[s, o])
    for s, options in enumerate(problem.steps):
        wanted: dict[Form, list[int]] = {}
        for o, option in enumerate(options):
            for form in option.wants:
                wanted.setdefault(form, []).append(column[s, o])
        for form, columns in wanted.items():
            row = dict.fromkeys(columns, 1.0)
            for giver in givers.get(form, []):
                row[giver] = row.get(giver, 0.0) - 1.0
            if form in conversions:
                row[conversions[form]] = -1.0
            rows.add(row, -np.inf, 0.0)
    spends = [problem.steps[s][o].spends for s, o in variables]
    spent = np.array(spends + [problem.spending.get(form, 0.0) for form in conversions])
    affordable = spent <= problem.budget
    if 0 < problem.budget < spent.sum():
        # In units of the budget: the solver's tolerance is absolute.
        shares = spent / problem.budget
        rows.add({int(at): shares[at] for at in np.flatnonzero(affordable & (spent > 0))}, 0.0, 1.0)
    result = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, affordable.astype(float)),
        constraints=rows.constraint(len(costs)),
        options={"node_limit": max_nodes} | ({} if gap is None else {"mip_rel_gap": gap}),
    )
    if result.x is None:
        return _without_solver(problem, str(result.message))
    taken = result.x[: len(variables)] > 0.5
    choices = tuple(
        next(o for o in range(len(options)) if taken[column[s, o]]) for s, options in enumerate(problem.steps)
    )
    cost = assignment_cost(problem, choices)
    bound = cost if result.mip_dual_bound is None else float(result.mip_dual_bound)
    return Assignment(choices, cost, min(bound, cost))


def _without_solver(problem: AssignmentProblem, reason: str) -> Assignment:
    choices = tuple(descended(problem))
    cost = assignment_cost(problem, choices)
    if math.isinf(cost) or assignment_spending(problem, choices) > problem.budget:
        raise NoAssignment(f"no assignment: {reason}")
    return Assignment(choices, cost, 0.0)


def settle_assignment(problem: AssignmentProblem, doubtful: Collection[Form], margin: float) -> Assignment:
    """The cheapest assignment, or one that makes fewer ``doubtful`` conversions and costs little more.

    Costs are estimates: a conversion that gains less than their error is as likely to lose.

    Parameters
    ----------
    margin : how much more may be spent in all, as a share of the least cost.
    """
    best = solve_assignment(problem)
    if not converted(problem, best.choices).intersection(doubtful):
        return best
    dear = {
        form: cost + margin * best.cost if form in doubtful else cost
        for form, cost in problem.conversions.items()
    }
    choices = solve_assignment(replace(problem, conversions=dear)).choices
    cost = assignment_cost(problem, choices)
    return Assignment(choices, cost, best.lower_bound) if cost <= (1 + margin) * best.cost else best


def converted(problem: AssignmentProblem, choices: Sequence[int]) -> set[Form]:
    """Forms that are wanted by chosen options but given by none."""
    options = [steps[choice] for steps, choice in zip(problem.steps, choices, strict=True)]
    given = {form for option in options for form in option.gives}
    return {form for option in options for form in option.wants} - given


def assignment_cost(problem: AssignmentProblem, choices: Sequence[int]) -> float:
    """Cost of given choices, conversions included; infinite where one that is needed cannot be made."""
    options = [steps[choice] for steps, choice in zip(problem.steps, choices, strict=True)]
    total = sum(option.cost for option in options)
    return total + sum(problem.conversions.get(form, float("inf")) for form in converted(problem, choices))


def assignment_spending(problem: AssignmentProblem, choices: Sequence[int]) -> float:
    """The part of the budget that given choices spend, conversions included."""
    total = sum(steps[choice].spends for steps, choice in zip(problem.steps, choices, strict=True))
    return total + sum(problem.spending.get(form, 0.0) for form in converted(problem, choices))


class _Rows:
    """Constraint rows collected sparsely."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def add(self, row: Mapping[int, float], low: float, high: float) -> None:
        number = len(self._low)
        self._entries += [(number, column, value) for column, value in row.items()]
        self._low.append(low)
        self._high.append(high)

    def constraint(self, columns: int) -> LinearConstraint:
        row, column, value = zip(*self._entries, strict=True)
        matrix = coo_array((value, (row, column)), shape=(len(self._low), columns)).tocsr()
        return LinearConstraint(matrix, self._low, self._high)
