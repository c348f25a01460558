"""Values that are evicted, whole stretches that run again, and the bound, by hand and on drawn networks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from test_recomputation import assert_runs

from tvm_mxplan.core.recomputation import Operation, Problem, Value, choose, simulated
from tvm_mxplan.core.recomputation.bound import _least_for, least_us
from tvm_mxplan.core.recomputation.eviction import PREFERENCES, evicting, without_needless

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


def trained(joined: Callable[[int], tuple[int, ...]], count: int = 40) -> Problem:
    """A layer reads ``joined(layer)``, its gradient the layer's operands and the gradient behind."""
    operations = [Operation(joined(at), 10.0) for at in range(count)]
    values = [Value(at, 100) for at in range(count)]
    for at in reversed(range(count)):
        behind = (len(values) - 1,) if len(values) > count else ()
        operations.append(Operation((*joined(at), at, *behind), 20.0))
        values.append(Value(len(operations) - 1, 100))
    return Problem(tuple(operations), tuple(values), count)


def plain(at: int) -> tuple[int, ...]:
    return (at - 1,) if at else ()


def residual(at: int) -> tuple[int, ...]:
    return (at - 1, at - 3) if at % 3 == 0 and at >= 3 else plain(at)


def dense(at: int) -> tuple[int, ...]:
    """Each layer of a block reads all layers of it."""
    return tuple(range(at - at % 5, at)) if at % 5 else plain(at)


def branches(at: int) -> tuple[int, ...]:
    """Two ways in turns, joined by every fifth."""
    return (at - 1, at - 2) if at % 5 == 0 and at else (max(0, at - 2),) if at else ()


def test_what_a_problem_says_of_its_values() -> None:
    problem = chain()
    assert problem.written == ((0,), (1,), (2,), (3,), (4,), (5,))
    assert problem.readers == ((1, 5), (2, 4), (3,), (4,), (5,), ())
    assert [problem.is_forward(value) for value in range(6)] == [True] * 3 + [False] * 3
    twice = replace(problem, operations=(*problem.operations[:5], Operation((0, 0, 4))))
    assert twice.readers[0] == (1, 5), "an operation counts once"
    assert simulated(Problem((), (), 0), NOTHING).peak == 0


def test_scratch_is_there_while_its_operation_runs() -> None:
    problem = chain()
    operations = (*problem.operations[:4], replace(problem.operations[4], scratch=7), problem.operations[5])
    run = simulated(replace(problem, operations=operations), NOTHING)
    assert run.loads == (100, 110, 111, 1111, 2117, 2100)


@pytest.mark.parametrize(
    ("us", "again"), [((100.0, 1.0), (1,)), ((1.0, 100.0), (0,)), ((10.0, 9.5), (0,)), ((10.0, 8.5), (1,))]
)
def test_what_costs_least_for_its_bytes_is_evicted(us: tuple[float, float], again: tuple[int, ...]) -> None:
    found = evicting(apart(us), 299, PREFERENCES[0])
    assert found is not None and found.again == again


@pytest.mark.parametrize(
    ("budget", "again", "fits"),
    [
        (300, (), True), (299, (1,), True), (240, (1,), True), (239, (0,), True), (200, (0,), True),
        (199, (0, 1), True), (140, (0, 1), True), (139, (0, 1), False),
    ],
)  # fmt: skip
def test_values_are_evicted_until_it_fits(budget: int, again: tuple[int, ...], fits: bool) -> None:
    problem = apart()
    assert simulated(problem, NOTHING).loads == (100, 190, 250, 300, 240, 100)
    found = choose(problem, budget)
    assert (tuple(sorted(found.run.again)), found.fits) == (again, fits)


def test_a_stretch_runs_again_at_once() -> None:
    """Of a chain of 40 layers in a fifth of its memory."""
    problem = trained(plain)
    whole = simulated(problem, NOTHING)
    found = evicting(problem, whole.peak // 5, PREFERENCES[0])
    assert found is not None and found.peak <= whole.peak // 5
    assert_runs(problem, found)
    stretches = [
        at for at, (one, other) in enumerate(zip(found.sequence, found.sequence[1:], strict=False))
        if one[1] and other[1] and other[0] == one[0] + 1
    ]  # fmt: skip
    assert len(stretches) > 10, "layers run again one after the other"


@pytest.mark.parametrize("joined", [plain, residual, dense, branches])
@pytest.mark.parametrize("share", [0.8, 0.6, 0.4])
def test_networks_come_within_shares_of_their_memory(
    joined: Callable[[int], tuple[int, ...]], share: float
) -> None:
    """At 60 % in no more than a third of the time more, in units in which a step takes 3 for each layer."""
    problem = trained(joined)
    whole = simulated(problem, NOTHING)
    found = choose(problem, int(share * whole.peak))
    assert_runs(problem, found.run)
    assert found.fits and found.run.peak <= share * whole.peak
    assert found.least_us <= found.run.us + 1e-9
    if share >= 0.6:
        assert found.run.us <= 0.35 * sum(operation.us for operation in problem.operations)


def test_what_is_needless_is_taken_out() -> None:
    spared = []
    for seed in range(40):
        draw = random.Random(seed)
        problem = trained(draw.choice([plain, residual, dense, branches]), draw.randint(5, 25))
        budget = int(simulated(problem, NOTHING).peak * draw.uniform(0.4, 0.9))
        found = evicting(problem, budget, draw.choice(PREFERENCES))
        assert found is not None
        better = without_needless(problem, found, budget)
        assert_runs(problem, better)
        assert better.us <= found.us and better.peak <= max(budget, found.peak)
        spared.append(found.us - better.us)
    assert sum(one > 0 for one in spared) >= 5


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
