"""Budgets that graphs share: exact against brute force, and monotone."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from tvm_mxplan.core import shared_budget
from tvm_mxplan.core.assignment import (
    AssignmentProblem,
    NoAssignment,
    Option,
    assignment_cost,
    assignment_spending,
    solve_assignment,
)
from tvm_mxplan.core.shared_budget import (
    Spending,
    cheapest_within,
    least_spending,
    solve_within,
    spending_of,
    thriftiest_of_cheap,
)

WIDE, SHORT = "wide", "short"


def chain(seed: int, steps: int = 5) -> AssignmentProblem:
    """Steps that read the one before: dear and exact, or cheap and not; short values are cast too."""
    random = np.random.default_rng(seed)
    options = []
    for step in range(steps):
        found = []
        for read, written in itertools.product((WIDE, SHORT), repeat=2):
            cost = float(random.integers(1, 20)) * (0.5 if read == SHORT else 1.0)
            spends = float(random.integers(1, 9)) * (read == SHORT) + 2.0 * (written == SHORT)
            found.append(Option(cost, ((step - 1, read),) if step else (), ((step, written),), spends))
        options.append(tuple(found))
    forms = [(step, form) for step in range(steps) for form in (WIDE, SHORT)]
    conversions = {form: float(random.integers(1, 6)) for form in forms}
    spending = {form: 3.0 for form in forms if form[1] == SHORT}
    return AssignmentProblem(tuple(options), conversions, spending)


def all_choices(problem: AssignmentProblem) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(len(options)) for options in problem.steps)))


@pytest.mark.parametrize("seed", range(12))
def test_one_graph_equals_brute_force_at_each_budget(seed: int) -> None:
    problem = chain(seed)
    known = [(assignment_cost(problem, c), assignment_spending(problem, c)) for c in all_choices(problem)]
    for budget in (0.0, 3.0, 7.0, 14.0, 25.0, 1e6):
        found = solve_assignment(replace(problem, budget=budget))
        assert assignment_spending(problem, found.choices) <= budget
        assert found.cost == pytest.approx(min(cost for cost, spent in known if spent <= budget))


@pytest.mark.parametrize("seed", range(6))
def test_two_graphs_share_what_there_is(seed: int) -> None:
    """Their values have the same numbers; costs are within the share that is asked for."""
    problems = [chain(seed, 3), chain(seed + 100, 3)]
    sums = []
    for budget in (0.0, 5.0, 9.0, 16.0, 1e6):
        found = solve_within(problems, budget)
        pairs = list(zip(problems, found, strict=True))
        assert sum(assignment_spending(p, a.choices) for p, a in pairs) <= budget
        assert all(a.cost == assignment_cost(p, a.choices) for p, a in pairs)
        best = min(
            sum(assignment_cost(p, c) for p, c in zip(problems, both, strict=True))
            for both in itertools.product(*map(all_choices, problems))
            if sum(assignment_spending(p, c) for p, c in zip(problems, both, strict=True)) <= budget
        )
        sums.append(sum(a.cost for a in found))
        assert best <= sums[-1] <= 1.005 * best
    assert sums == sorted(sums, reverse=True) and sums[0] > sums[-1]


def test_no_graph_reads_what_another_one_makes() -> None:
    """Values that nobody converts have numbers of their own, too."""

    def graph(wide: float, short: float) -> AssignmentProblem:
        made = tuple(
            Option(cost, (), ((0, form),)) for form, cost in ((WIDE, wide), (SHORT, short)) if cost < math.inf
        )
        read = (Option(0, ((0, SHORT),), (), 2.0), Option(3, ((0, SHORT),), ()))
        return AssignmentProblem((made, read), {})

    problems = [graph(math.inf, 1), graph(1, 5)]
    for several in (problems, problems[::-1]):
        found = solve_within(several, 2.0)
        assert sum(one.cost for one in found) == 1 + 5 + 3
        assert [one.cost for one in found] == [
            assignment_cost(p, one.choices) for p, one in zip(several, found, strict=True)
        ]


def test_the_example_of_the_module() -> None:
    def graph(cheap: float) -> AssignmentProblem:
        return AssignmentProblem(((Option(9, (), ()), Option(cheap, (), (), 2.0)),), {})

    problems = [graph(6), graph(8)]
    assert [a.cost for a in solve_within(problems, 2.0)] == [6, 9]
    assert [a.cost for a in solve_within(problems, 4.0)] == [6, 8]


def test_without_a_bound_each_graph_is_solved_alone() -> None:
    problems = [chain(1), chain(2)]
    assert solve_within(problems, math.inf) == [solve_assignment(problem) for problem in problems]
    assert solve_within([], 1.0) == [] and solve_within([], math.inf) == []


def test_what_cannot_be_had_is_an_error_and_the_least_is_known() -> None:
    demanded = AssignmentProblem(((Option(1, (), (), 5.0), Option(9, (), (), 4.0)),), {})
    with pytest.raises(NoAssignment, match="no assignment"):
        solve_within([demanded, chain(3)], 1.0)
    assert least_spending([demanded, chain(3)]) == 4.0
    reader = (Option(1, ((0, SHORT),), ()),)
    given = (Option(1, (), ((0, WIDE),)),)
    assert least_spending([AssignmentProblem((given, reader), {(0, SHORT): 1.0}, {(0, SHORT): 7.0})]) == 7.0


def test_where_the_search_ends_early_what_spends_least_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_early(problem: AssignmentProblem, **limits: object) -> object:
        if math.isfinite(problem.budget):
            raise NoAssignment("no assignment: the limit was reached")
        return solve_assignment(problem)

    monkeypatch.setattr(shared_budget, "solve_assignment", ends_early)
    problems = [chain(4), chain(5)]
    found = solve_within(problems, 8.0)
    pairs = list(zip(problems, found, strict=True))
    assert sum(assignment_spending(p, a.choices) for p, a in pairs) == least_spending(problems) <= 8.0
    assert all(a.cost == assignment_cost(p, a.choices) for p, a in pairs)


@pytest.mark.slow
def test_many_steps_are_solved_at_a_price_and_stay_within() -> None:
    problems = [chain(seed, 40) for seed in range(5)]
    free = solve_within(problems, math.inf)
    spends = sum(assignment_spending(p, a.choices) for p, a in zip(problems, free, strict=True))
    assert solve_within(problems, spends) == free
    costs = []
    for share in (0.0, 0.2, 0.5, 0.8):
        found = solve_within(problems, share * spends)
        spent = sum(assignment_spending(p, a.choices) for p, a in zip(problems, found, strict=True))
        assert 0.75 * share * spends <= spent <= share * spends
        costs.append(sum(a.cost for a in found))
    assert costs == sorted(costs, reverse=True) and costs[-1] > sum(a.cost for a in free)


def test_tiny_budgets_are_kept_to_their_own_scale() -> None:
    """The solver's tolerance is absolute: squares of errors of 1e-6 are far below it."""
    steps = tuple((Option(2.0, (), ()), Option(1.0, (), (), 1e-12)) for _ in range(9))
    found = solve_assignment(AssignmentProblem(steps, {}, budget=4.5e-12))
    assert sum(found.choices) == 4


class Found(NamedTuple):
    cost: float
    spent: float


@pytest.mark.parametrize("seed", range(20))
def test_a_larger_budget_never_buys_a_dearer_plan(seed: int) -> None:
    """Plans of a search that is off by up to a third, and spends less than it may."""
    known: dict[float, Found] = {}

    def plan_at(budget: float) -> Found:
        if budget not in known:
            random = np.random.default_rng([seed, len(known)])
            spent = min(budget, 60.0) * float(random.uniform(0.4, 1.0))
            known[budget] = Found(100.0 / (1.0 + spent) * float(random.uniform(1.0, 1.5)), spent)
        return known[budget]

    known[0.0], known[math.inf] = Found(160.0, 0.0), Found(100.0 / 61.0, 60.0)
    budgets = [0.0, *np.geomspace(0.05, 80.0, 200)]
    found = [cheapest_within(plan_at, budget, Spending(0.0, 0.1)) for budget in budgets]
    assert all(one.spent <= budget for one, budget in zip(found, budgets, strict=True))
    costs = [one.cost for one in found]
    assert costs == sorted(costs, reverse=True) and len(set(costs)) > 4
    assert found[0] == known[0.0] and found[-1] == known[math.inf]


def test_a_plan_within_the_budget_is_near_the_best_where_searches_are_exact() -> None:
    def plan_at(budget: float) -> Found:
        spent = min(budget, 64.0)
        return Found(100.0 - 10.0 * math.sqrt(spent), spent)

    for budget in np.geomspace(0.1, 64.0, 50):
        found = cheapest_within(plan_at, budget, Spending(0.0, 0.1))
        assert plan_at(budget).cost <= found.cost <= 1.005 * plan_at(0.98 * budget).cost


def test_what_is_spent_at_once_counts_conversions() -> None:
    options = (Option(1, (), (), 5.0), Option(9, (), ()))
    problem = AssignmentProblem((options,), {(0, SHORT): 1.0}, {(0, SHORT): 2.0})
    assert spending_of([problem, chain(3)]) == Spending(0.0, 2.0)
    assert spending_of([problem]) == Spending(0.0, 2.0)
    assert spending_of([]) == Spending(0.0, 0.0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("margin", [0.0, 0.05, 0.3])
def test_of_what_costs_little_more_the_one_that_spends_least(seed: int, margin: float) -> None:
    problem = chain(seed, 4)
    found = thriftiest_of_cheap(problem, problem, margin)
    costs = {choices: assignment_cost(problem, choices) for choices in all_choices(problem)}
    most = (1.0 + margin) * min(costs.values())
    least = min(assignment_spending(problem, one) for one, cost in costs.items() if cost <= most)
    assert found.cost == costs[found.choices] <= most
    assert assignment_spending(problem, found.choices) == least


def test_what_spends_nothing_is_left_as_it_is() -> None:
    problem = AssignmentProblem(((Option(3, (), ()), Option(2, (), ())),), {})
    assert thriftiest_of_cheap(problem, problem, 0.9) == solve_assignment(problem)
