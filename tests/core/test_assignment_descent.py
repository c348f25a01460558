"""Assignments without a search: complete, and such that no change of one step makes them cheaper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvm_mxplan.core.assignment import (
    AssignmentProblem,
    NoAssignment,
    Option,
    assignment_cost,
    solve_assignment,
)
from tvm_mxplan.core.assignment_descent import descended


def random_problem(seed: int, steps: int) -> AssignmentProblem:
    """Steps that read up to three values, of earlier and later ones; some forms cannot be made."""
    generator = np.random.default_rng(seed)
    made = []
    for step in range(steps):
        reads = generator.choice(steps, size=int(generator.integers(0, 4)), replace=False)
        options = tuple(
            Option(
                float(generator.uniform(0, 9)),
                tuple((int(v), str(form)) for v in reads),
                ((step, str(form)),),
            )
            for form in generator.permutation(list("xyz"))[: int(generator.integers(1, 4))]
        )
        made.append(options)
    forms = [(value, form) for value in range(steps) for form in "xyz"]
    return AssignmentProblem(tuple(made), {form: float(generator.uniform(0, 5)) for form in forms})


@pytest.mark.parametrize("seed", range(20))
def test_no_single_change_lowers_the_cost(seed: int) -> None:
    problem = random_problem(seed, 12)
    choices = descended(problem)
    least = assignment_cost(problem, choices)
    for at, options in enumerate(problem.steps):
        for other in range(len(options)):
            changed = [*choices[:at], other, *choices[at + 1 :]]
            assert assignment_cost(problem, changed) >= least - 1e-6


def test_a_form_that_cannot_be_made_is_avoided_before_and_behind_its_writer() -> None:
    """The cheapest options want v as y, which only the dearest writer gives."""
    writer = (Option(0, (), ((0, "x"),)), Option(7, (), ((0, "y"),)))
    reader = (Option(0, ((0, "y"),), ()), Option(2, ((0, "x"),), ()))
    for steps in ((writer, reader), (reader, writer)):
        problem = AssignmentProblem(steps, {})
        assert assignment_cost(problem, descended(problem)) in (2, 7)


def test_a_conversion_counts_once() -> None:
    source = (Option(0, (), ((0, "x"),)),)
    reader = (Option(0, ((0, "y"),), ()), Option(2, ((0, "x"),), ()))
    problem = AssignmentProblem((source, *[reader] * 4), {(0, "y"): 1.5})
    assert assignment_cost(problem, descended(problem)) == 1.5


def test_it_stands_in_where_the_solver_finds_nothing() -> None:
    problem = random_problem(5, 300)
    found = solve_assignment(problem, max_nodes=0)
    assert (found.choices, found.lower_bound) == (tuple(descended(problem)), 0.0)
    assert found.cost == assignment_cost(problem, found.choices) < math.inf
    assert not found.is_bounded and solve_assignment(random_problem(5, 12)).is_bounded


def test_a_budget_that_it_breaks_is_an_error() -> None:
    problem = random_problem(5, 300)
    spending = tuple(
        tuple(Option(o.cost, o.wants, o.gives, 1.0) for o in options) for options in problem.steps
    )
    with pytest.raises(NoAssignment, match="no assignment"):
        solve_assignment(AssignmentProblem(spending, problem.conversions, {}, 299.5), max_nodes=0)
