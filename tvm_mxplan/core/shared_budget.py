"""Several assignment problems that spend of one budget: the graphs of one model, solved as one.

    graph A    options that cost 9, 6 and spend 0, 2         graph B    options that cost 9, 8 and spend 0, 2

    a budget of 2 goes to A, where it gains more: 6 + 9; one of 4 is enough for both: 6 + 8

Where nothing bounds the budget, each graph is solved alone.  So they are where there are many steps: spending
then has a price, which grows until all of it is within the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeVar

from .assignment import (
    Assignment,
    AssignmentProblem,
    Form,
    NoAssignment,
    Option,
    assignment_cost,
    assignment_spending,
    solve_assignment,
)

_MANY = 150
"""Steps with a choice: a search over more of them at once takes long."""
_TURNS, _FACTOR = 12, 8.0
"""Prices that are tried, and how much they differ as long as none is known on either side."""
_NODES = 1000
_GAP = 5e-3
"""Costs are estimates: what is within that of the least is as good."""


_PROBES = 9
"""Budgets that ``cheapest_within`` looks at: a fiftieth apart where the largest is 10,000 times the least."""


class Plan(Protocol):
    """Anything that costs and spends."""

    @property
    def cost(self) -> float: ...

    @property
    def spent(self) -> float: ...


PlanT = TypeVar("PlanT", bound=Plan)


class Spending(NamedTuple):
    """The least that plans spend, and the least that one can spend more."""

    least: float
    unit: float


def cheapest_within(plan_at: Callable[[float], PlanT], budget: float, spending: Spending) -> PlanT:
    """A plan that spends ``budget`` at most, and costs no more than one of a smaller budget.

    Plans come of searches that end early, so that of a larger budget may be the dearer one by what their
    ends are off.  Here budgets to search at do not depend on ``budget``: they halve an interval, whose ends
    follow from the plans alone.  Where a plan spends too much, those of the lower half remain, and of these
    such that cost less than it do not count.  So two budgets see the same plans up to the first that only the
    larger one affords, and from there on the smaller one is left with plans that cost as much, or more.

    Parameters
    ----------
    plan_at : the plan of a search within a budget, the same whenever it is asked; infinity bounds nothing.
    budget : at least ``spending.least``.
    """
    free = plan_at(math.inf)
    if free.spent <= budget:
        return free
    best = plan_at(spending.least)
    low, high, floor = spending.least + spending.unit / 2.0, free.spent, free.cost
    for _ in range(_PROBES):
        if low >= high or best.cost <= (1.0 + _GAP) * floor:
            break
        middle = math.sqrt(low * high)
        found = plan_at(middle)
        if found.spent <= budget and found.cost >= floor:
            low, best = middle, min(best, found, key=lambda plan: plan.cost)
        else:
            high, floor = middle, max(floor, found.cost)
    return best


def spending_of(problems: Sequence[AssignmentProblem]) -> Spending:
    """The least that assignments spend, and the smallest amount of all that is spent at once."""
    amounts = [option.spends for problem in problems for options in problem.steps for option in options]
    amounts += [spent for problem in problems for spent in problem.spending.values()]
    return Spending(least_spending(problems), min((amount for amount in amounts if amount > 0), default=0.0))


def solve_within(problems: Sequence[AssignmentProblem], budget: float) -> list[Assignment]:
    """The cheapest assignments of all problems that together spend ``budget`` at most.

    Raises
    ------
    NoAssignment : none spends so little.
    """
    if math.isinf(budget):
        return [solve_assignment(problem) for problem in problems]
    if sum(len(options) > 1 for problem in problems for options in problem.steps) > _MANY:
        return _by_price(problems, budget)
    try:
        joint = solve_assignment(replace(_joined(problems), budget=budget), max_nodes=_NODES, gap=_GAP)
    except NoAssignment:
        # Nothing was found within the nodes, or there is nothing.
        if least_spending(problems) > budget:
            raise
        return [_thriftiest(problem) for problem in problems]
    found, at = [], 0
    for problem in problems:
        choices = joint.choices[at : at + len(problem.steps)]
        at += len(problem.steps)
        # What bounds the sum bounds no summand.
        found.append(Assignment(choices, assignment_cost(problem, choices), -math.inf))
    return found


def _by_price(problems: Sequence[AssignmentProblem], budget: float) -> list[Assignment]:
    """The cheapest assignments found at a price of spending at which they are within the budget."""
    free = [solve_assignment(problem) for problem in problems]
    if _spent(problems, free) <= budget:
        return free
    found = [_thriftiest(problem) for problem in problems]
    if _spent(problems, found) > budget:
        raise NoAssignment("no assignment spends so little")
    low, high = 0.0, math.inf
    price = sum(one.cost for one in free) / (budget or 1.0)
    for _ in range(_TURNS):
        priced = [_at_price(problem, price) for problem in problems]
        if _spent(problems, priced) <= budget:
            high, found = price, priced
        else:
            low = price
        price = high / _FACTOR if low == 0 else low * _FACTOR if math.isinf(high) else math.sqrt(low * high)
    return found


def _spent(problems: Sequence[AssignmentProblem], found: Sequence[Assignment]) -> float:
    pairs = zip(problems, found, strict=True)
    return sum(assignment_spending(problem, one.choices) for problem, one in pairs)


def _at_price(problem: AssignmentProblem, price: float) -> Assignment:
    """The cheapest assignment where spending costs something, at its own cost."""
    steps = tuple(
        tuple(replace(option, cost=option.cost + price * option.spends) for option in options)
        for options in problem.steps
    )
    conversions = {
        form: cost + price * problem.spending.get(form, 0.0) for form, cost in problem.conversions.items()
    }
    choices = solve_assignment(replace(problem, steps=steps, conversions=conversions)).choices
    return Assignment(choices, assignment_cost(problem, choices), -math.inf)


def thriftiest_of_cheap(problem: AssignmentProblem, weighed: AssignmentProblem, margin: float) -> Assignment:
    """Of the assignments that cost little more than the least, one that spends least.

    Parameters
    ----------
    weighed : the problem with what options and conversions are to be seen to spend here.
    margin : how much more it may cost, as a share of the least: costs are estimates.
    """
    best = solve_assignment(problem)
    most, spent = (1.0 + margin) * best.cost, assignment_spending(weighed, best.choices)
    if spent <= 0.0:
        return best
    steps = tuple(
        tuple(replace(option, cost=option.spends / spent, spends=option.cost) for option in options)
        for options in weighed.steps
    )
    conversions = {form: weighed.spending.get(form, 0.0) / spent for form in weighed.conversions}
    turned = AssignmentProblem(steps, conversions, weighed.conversions, most)
    try:
        choices = solve_assignment(turned, max_nodes=_NODES, gap=_GAP).choices
    except NoAssignment:  # none was found within the nodes
        return best
    cost = assignment_cost(problem, choices)
    if cost > most or assignment_spending(weighed, choices) >= spent:
        return best
    return Assignment(choices, cost, best.lower_bound)


def least_spending(problems: Sequence[AssignmentProblem]) -> float:
    """The sum that the assignments that spend least spend."""
    return sum(assignment_spending(problem, _thriftiest(problem).choices) for problem in problems)


def _thriftiest(problem: AssignmentProblem) -> Assignment:
    """An assignment that spends least, at its own cost."""
    most = max((option.spends for options in problem.steps for option in options), default=0.0)
    unit = max(most, *problem.spending.values(), 0.0) or 1.0
    steps = tuple(
        tuple(replace(option, cost=option.spends / unit, spends=0.0) for option in options)
        for options in problem.steps
    )
    conversions = {form: problem.spending.get(form, 0.0) / unit for form in problem.conversions}
    choices = solve_assignment(AssignmentProblem(steps, conversions)).choices
    return Assignment(choices, assignment_cost(problem, choices), -math.inf)


def _joined(problems: Sequence[AssignmentProblem]) -> AssignmentProblem:
    """One problem of all graphs, whose values are numbered anew."""
    steps: list[tuple[Option, ...]] = []
    conversions: dict[Form, float] = {}
    spending: dict[Form, float] = {}
    first = 0
    for problem in problems:

        def moved(form: Form, by: int = first) -> Form:
            return form[0] + by, form[1]

        steps += [
            tuple(
                replace(option, wants=tuple(map(moved, option.wants)), gives=tuple(map(moved, option.gives)))
                for option in options
            )
            for options in problem.steps
        ]
        conversions |= {moved(form): cost for form, cost in problem.conversions.items()}
        spending |= {moved(form): spent for form, spent in problem.spending.items()}
        first += 1 + max((value for value, _ in _forms(problem)), default=-1)
    return AssignmentProblem(tuple(steps), conversions, spending)


def _forms(problem: AssignmentProblem) -> list[Form]:
    used = [
        form for options in problem.steps for option in options for form in (*option.wants, *option.gives)
    ]
    return [*used, *problem.conversions]
