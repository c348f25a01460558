"""Choices that grow by the best value, values that are kept again, and the bound, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.recomputation import Operation, Problem, Value, choose, simulated
from tvm_mxplan.core.recomputation.greedy import _best_move, _kept_again, _least_for, _Lives, greedy, least_us

NOTHING: frozenset[int] = frozenset()


def chain() -> Problem:
    """a, b, c forward, each from the one before; r, s, t backward, which read c, b and a."""
    reads = [(), (0,), (1,), (2,), (1, 3), (0, 4)]
    operations = tuple(Operation(read, us) for read, us in zip(reads, (1, 2, 4, 8, 16, 32), strict=True))
    sizes = (100, 10, 1, 1000, 1000, 1000)
    return Problem(operations, tuple(Value(at, size) for at, size in enumerate(sizes)), 3)


def apart(us: tuple[float, float] = (100.0, 1.0)) -> Problem:
    """Two large values from nothing, and a small one; the first takes long to make."""
    operations = (
        Operation((), us[0]), Operation((), us[1]), Operation((), 1.0),
        Operation((2,)), Operation((1, 3)), Operation((0,)),
    )  # fmt: skip
    return Problem(operations, tuple(Value(at, size) for at, size in enumerate((100, 90, 60, 50, 0, 0))), 3)


def lives(problem: Problem, dropped: frozenset[int] = NOTHING) -> _Lives:
    return _Lives(problem, simulated(problem, dropped), dropped)


def test_what_a_problem_says_of_its_values() -> None:
    problem = chain()
    assert problem.written == ((0,), (1,), (2,), (3,), (4,), (5,))
    assert problem.readers == ((1, 5), (2, 4), (3,), (4,), (5,), ())
    assert [problem.is_forward(value) for value in range(6)] == [True] * 3 + [False] * 3
    twice = replace(problem, operations=(*problem.operations[:5], Operation((0, 0, 4))))
    assert twice.readers[0] == (1, 5), "an operation counts once"
    assert simulated(Problem((), (), 0), NOTHING).peak == 0


def test_values_that_wait_for_backward_readers_alone() -> None:
    found = lives(chain())
    waiting = [sorted(found.idle(at)) for at in range(6)]
    assert waiting == [[], [], [0], [0, 1], [0], []]
    empty = replace(chain(), values=(Value(0, 0), *chain().values[1:]))
    assert [sorted(lives(empty).idle(at)) for at in range(6)] == [[], [], [], [1], [], []]


def test_what_dropping_a_value_frees_and_takes() -> None:
    found = lives(chain())
    assert found.move(0, 3) == (frozenset({0}), 100, 1.0)
    # Its source is there until its reader runs.
    assert found.move(1, 3) == (frozenset({1}), 10, 2.0)


def test_what_a_value_is_made_from_is_dropped_with_it() -> None:
    """a is read backward before b is, so it is gone when b has to be made again."""
    operations = (
        Operation((), 1),
        Operation((0,), 2),
        Operation((), 4),
        Operation((0, 2)),
        Operation((1, 3)),
    )
    problem = Problem(operations, tuple(Value(at, size) for at, size in enumerate((100, 10, 7, 5, 5))), 3)
    found = lives(problem)
    assert found.move(1, 2) == (frozenset({0, 1}), 110, 3.0)
    nothing = replace(problem, values=(Value(0, 0), *problem.values[1:]))
    assert lives(nothing).move(1, 2) == (frozenset({1}), 10, 2.0), "what stands elsewhere is there"
    # Of what is dropped already, and of what runs again already, nothing is to be done.
    assert lives(problem, frozenset({0})).move(1, 2) == (frozenset({1}), 10, 3.0 - 1.0)


@pytest.mark.parametrize(
    ("us", "expected"), [((100.0, 1.0), {1}), ((1.0, 100.0), {0}), ((10.0, 9.5), {0}), ((10.0, 8.5), {1})]
)
def test_the_most_bytes_for_the_time_go_first(us: tuple[float, float], expected: set[int]) -> None:
    problem = apart(us)
    assert _best_move(problem, simulated(problem, NOTHING), NOTHING) == expected


def test_nothing_moves_where_nothing_waits() -> None:
    problem = apart()
    operations = (*problem.operations[:3], Operation((0, 1, 2)))
    none = Problem(operations, problem.values[:4], 3)
    assert _best_move(none, simulated(none, NOTHING), NOTHING) == NOTHING
    assert greedy(none, 10) == NOTHING


@pytest.mark.parametrize(
    ("budget", "dropped"),
    [(300, set()), (299, {1}), (250, {1}), (240, {1}), (239, {0}), (200, {0}), (199, {0, 1}), (140, {0, 1})],
)
def test_values_are_dropped_until_it_fits(budget: int, dropped: set[int]) -> None:
    problem = apart()
    assert simulated(problem, NOTHING).loads == (100, 190, 250, 300, 240, 100)
    assert simulated(problem, frozenset({1})).peak == 240
    found = choose(problem, budget)
    assert found.dropped == dropped
    assert found.fits == (found.run.peak <= budget)


@pytest.mark.parametrize(
    ("budget", "kept"), [(300, set()), (299, {1}), (240, {1}), (239, {0}), (199, {0, 1})]
)
def test_the_dearest_are_kept_again_where_there_is_room(budget: int, kept: set[int]) -> None:
    problem = apart()
    both = frozenset({0, 1})
    run = simulated(problem, both)
    assert run.peak == 140
    assert _kept_again(problem, both, run, budget) == kept


def test_what_cannot_fit_is_as_small_as_was_found() -> None:
    problem = apart()
    found = greedy(problem, 1)
    assert simulated(problem, found).peak < simulated(problem, NOTHING).peak
    assert not choose(problem, 1).fits


@pytest.mark.parametrize(
    ("nbytes", "us"),
    [(1, 0.01), (50, 0.5), (100, 1.0), (150, 6.0), (200, 11.0), (201, None), (300, None)],
)
def test_bytes_are_taken_where_they_cost_least(nbytes: int, us: float | None) -> None:
    """By parts: 100 bytes for 10 microseconds, and as many, of two values, for 1."""
    operations = (Operation((), 10.0), Operation((), 1.0), Operation((0, 1, 2)))
    problem = Problem(operations, (Value(0, 100), Value(1, 60), Value(1, 40), Value(2, 5)), 2)
    found = _least_for(problem, [0, 1, 2], nbytes)
    assert found is None if us is None else found == pytest.approx(us)
    assert _least_for(problem, [], 1) is None


@pytest.mark.parametrize(
    ("budget", "us"), [(2110, 0.0), (2109, 0.01), (2100, 0.1), (2099, None), (100, None)]
)
def test_the_bound_is_that_of_the_operation_that_needs_most(budget: int, us: float | None) -> None:
    problem = chain()
    assert simulated(problem, NOTHING).loads == (100, 110, 111, 1111, 2110, 2100)
    found = least_us(problem, budget)
    assert found is None if us is None else found == pytest.approx(us)
