"""The layout choice as plain data: exact against brute force on small random graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tvm_mxplan.core import assignment
from tvm_mxplan.core.assignment import (
    Assignment,
    AssignmentProblem,
    NoAssignment,
    Option,
    assignment_cost,
    converted,
    settle_assignment,
    solve_assignment,
)

FORMS = ("x", "y", "z")


def random_problem(seed: int) -> AssignmentProblem:
    """A chain with branches: each step reads one or two earlier values and writes its own."""
    generator = np.random.default_rng(seed)
    steps = []
    for step in range(int(generator.integers(2, 7))):
        count = int(generator.integers(0, min(step, 2) + 1))
        reads = generator.choice(step, size=count, replace=False) if step else []
        options = tuple(
            Option(
                float(generator.integers(0, 20)),
                tuple((int(value), str(generator.choice(FORMS))) for value in reads),
                ((step, form),),
            )
            for form in FORMS[: int(generator.integers(1, 4))]
        )
        steps.append(options)
    conversions = {
        (value, form): float(generator.integers(1, 15)) for value in range(len(steps)) for form in FORMS
    }
    return AssignmentProblem(tuple(steps), conversions)


@pytest.mark.parametrize("seed", range(40))
def test_equals_brute_force(seed: int) -> None:
    problem = random_problem(seed)
    found = solve_assignment(problem)
    best = min(
        assignment_cost(problem, choices)
        for choices in itertools.product(*(range(len(options)) for options in problem.steps))
    )
    assert found.cost == pytest.approx(best)
    assert found.is_optimal


def test_the_example_of_the_module() -> None:
    a = (Option(3, (), ((0, "x"),)), Option(2, (), ((0, "y"),)))
    b = (Option(1, ((0, "x"),), ()), Option(4, ((0, "y"),), ()))
    found = solve_assignment(AssignmentProblem((a, b), {(0, "x"): 1.0, (0, "y"): 1.0}))
    assert found.cost == 4


def test_a_conversion_is_paid_once_however_many_want_it() -> None:
    source = (Option(0, (), ((0, "x"),)),)
    reader = (Option(0, ((0, "y"),), ()),)
    found = solve_assignment(AssignmentProblem((source, reader, reader, reader), {(0, "y"): 5.0}))
    assert found.cost == 5


def test_no_assignment_is_an_error() -> None:
    source, reader = (Option(0, (), ((0, "x"),)),), (Option(0, ((0, "y"),), ()),)
    with pytest.raises(NoAssignment, match="no assignment"):
        solve_assignment(AssignmentProblem((source, reader), {}))


# --- conversions that gain less than costs are known to -----------------------------------------------------


def two_kinds(gain: float, value: int = 0) -> AssignmentProblem:
    """100 as x throughout; a conversion in the middle gains ``gain`` beyond its cost of 5."""
    first = (Option(50, (), ((value, "x"),)), Option(90, (), ((value, "y"),)))
    second = (Option(50, ((value, "x"),), ()), Option(45 - gain, ((value, "y"),), ()))
    return AssignmentProblem((first, second), {(value, "x"): 5.0, (value, "y"): 5.0})


@pytest.mark.parametrize(("gain", "converts"), [(-1.0, False), (1.5, False), (3.0, True)])
def test_a_doubtful_conversion_has_to_gain_more_than_the_margin(gain: float, converts: bool) -> None:
    problem = two_kinds(gain)
    settled = settle_assignment(problem, {(0, "y")}, 0.02)
    assert converted(problem, settled.choices) == ({(0, "y")} if converts else set())
    assert settled.lower_bound == pytest.approx(min(100.0, 100.0 - gain))
    assert settled.cost == pytest.approx(100.0 - gain if converts else 100.0)


def test_fewer_doubtful_conversions_are_not_worth_any_price() -> None:
    """Ten doubtful conversions, each of which gains 1.5 of 1000: too little alone, more than 1 % together."""
    pairs = [two_kinds(1.5, value) for value in range(10)]
    steps = tuple(step for pair in pairs for step in pair.steps)
    problem = AssignmentProblem(
        steps, {form: cost for pair in pairs for form, cost in pair.conversions.items()}
    )
    doubtful = {(value, "y") for value in range(10)}
    best = solve_assignment(problem)
    assert converted(problem, best.choices) == doubtful
    assert best.cost == pytest.approx(985)
    assert settle_assignment(problem, doubtful, 0.01) == best
    assert converted(problem, settle_assignment(problem, doubtful, 0.02).choices) == set()


def test_conversions_beyond_doubt_are_as_they_were() -> None:
    problem = two_kinds(1.5)
    assert settle_assignment(problem, {(0, "x")}, 0.02) == solve_assignment(problem)


@pytest.mark.parametrize("seed", range(40))
def test_settling_costs_no_more_than_the_margin(seed: int) -> None:
    problem = random_problem(seed)
    best, settled = solve_assignment(problem), settle_assignment(problem, set(problem.conversions), 0.1)
    assert best.cost - 1e-6 <= settled.cost <= 1.1 * best.cost + 1e-6
    assert settled.cost == pytest.approx(assignment_cost(problem, settled.choices))
    assert len(converted(problem, settled.choices)) <= len(converted(problem, best.choices))


def test_nothing_to_choose() -> None:
    assert solve_assignment(AssignmentProblem((), {})).choices == ()


@pytest.mark.parametrize(
    ("cost", "gap", "optimal"),
    [(100.0, 9e-5, True), (100.0, 2e-4, False), (0.1, 9e-7, True), (0.1, 2e-6, False), (5.0, 0.0, True)],
)
def test_what_counts_as_optimal(cost: float, gap: float, optimal: bool) -> None:
    assert Assignment((), cost, cost - gap).is_optimal is optimal


def test_the_search_is_told_its_limit_and_tells_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    solver = assignment.milp

    def noting(*args: object, options: dict, **kwargs: object) -> object:
        asked.append(dict(options))
        result = solver(*args, options=options, **kwargs)
        result.mip_dual_bound = bounds[len(asked) - 1]
        return result

    monkeypatch.setattr(assignment, "milp", noting)
    bounds = [90.0, 120.0, None]
    problem = two_kinds(-1.0)
    found = [solve_assignment(problem, max_nodes=17), solve_assignment(problem), solve_assignment(problem)]
    assert asked == [{"node_limit": 17}, {"node_limit": 2000}, {"node_limit": 2000}]
    assert [one.lower_bound for one in found] == [90.0, 100.0, 100.0]
    assert [one.is_optimal for one in found] == [False, True, True]


def test_nothing_to_choose_costs_nothing() -> None:
    assert solve_assignment(AssignmentProblem((), {(0, "x"): 1.0})) == Assignment((), 0.0, 0.0)
