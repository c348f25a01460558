"""The values that are made again: runs by hand, exact choices against all choices, bounds below them."""

import itertools
import random

import pytest

from tvm_mxplan.core.recomputation import Operation, Problem, Run, Value, choose, simulated
from tvm_mxplan.core.recomputation.bound import least_us
from tvm_mxplan.core.recomputation.chain import NotAChain, cheapest_on_chain
from tvm_mxplan.core.recomputation.problem import run_of


def by_hand() -> Problem:
    """The problem in the text of problem.py: a, b, c forward, r, s, t backward."""
    reads = [(), (0,), (1,), (2,), (1, 3), (0, 4)]
    operations = tuple(Operation(read, us) for read, us in zip(reads, (1, 2, 4, 8, 16, 32), strict=True))
    sizes = (100, 10, 1, 1000, 1000, 1000)
    return Problem(operations, tuple(Value(at, size) for at, size in enumerate(sizes)), 3)


def drawn_chain(draw: random.Random) -> Problem:
    """A chain some of whose values are read backward, each by one or two operations, and gradients."""
    count = draw.randint(1, 8)
    operations = [Operation((at - 1,) if at else (), draw.randint(1, 20)) for at in range(count)]
    values = [Value(at, draw.choice([0, 1, 5, 10, 30])) for at in range(count)]
    gradient = None
    for place in reversed(range(count)):
        for _ in range(draw.choice([0, 1, 1, 2]) if place else 1):
            reads = (place,) if gradient is None else (place, gradient)
            operations.append(Operation(reads, 1, draw.choice([0, 0, 0, 8])))
            values.append(Value(len(operations) - 1, draw.choice([0, 3, 12])))
            if draw.random() < 0.7:
                gradient = len(values) - 1
    return Problem(tuple(operations), tuple(values), count)


def drawn_graph(draw: random.Random) -> Problem:
    """Forward operations that read any before them; backward ones that read any forward value."""
    count = draw.randint(2, 7)
    operations, values = [], []
    for at in range(count):
        before = range(len(values))
        operations.append(
            Operation(tuple(draw.sample(before, min(len(before), draw.randint(0, 2)))), draw.randint(1, 9))
        )
        values += [Value(at, draw.choice([1, 4, 9])) for _ in range(draw.randint(1, 2))]
    forward = len(values)
    for _ in range(draw.randint(1, 6)):
        reads = draw.sample(range(forward), draw.randint(1, 2)) + list(range(forward, len(values)))[-1:]
        operations.append(Operation(tuple(reads), 1))
        values.append(Value(len(operations) - 1, draw.choice([0, 2, 5])))
    return Problem(tuple(operations), tuple(values), count)


def every_choice(problem: Problem):  # type: ignore[no-untyped-def]
    forward = [value for value in range(len(problem.values)) if problem.is_forward(value)]
    for count in range(len(forward) + 1):
        for chosen in itertools.combinations(forward, count):
            yield simulated(problem, frozenset(chosen))


def assert_runs(problem: Problem, run: Run) -> None:
    """All operations run in their order, nothing reads what is not made, nothing forward runs again early."""
    assert [at for at, again in run.sequence if not again] == list(range(len(problem.operations)))
    made: set[int] = set()
    ended = False
    for at, again in run.sequence:
        ended = ended or (not again and at + 1 >= problem.backward)
        assert not again or (ended and at < problem.backward)
        assert made.issuperset(problem.operations[at].reads)
        made.update(problem.written[at])
    assert run == run_of(problem, run.sequence) and run.peak == max(loads_by_hand(problem, run))


def loads_by_hand(problem: Problem, run: Run) -> list[int]:
    """Bytes in each operation: of values written by then that are read before they are written again."""
    loads = []
    for at, (operation, _) in enumerate(run.sequence):
        alive = 0
        for value, told in enumerate(problem.values):
            places = [place for place, (one, _) in enumerate(run.sequence[: at + 1]) if one == told.writer]
            if not places:
                continue
            until = next(
                (place for place, (one, _) in enumerate(run.sequence) if place > at and one == told.writer),
                len(run.sequence),
            )
            read = any(value in problem.operations[one].reads for one, _ in run.sequence[at:until])
            alive += told.nbytes * (read or places[-1] == at)
        loads.append(alive + problem.operations[operation].scratch)
    return loads


def test_a_run_by_hand() -> None:
    problem = by_hand()
    whole = simulated(problem, frozenset())
    assert whole.sequence == tuple((at, False) for at in range(6))
    assert whole.loads == (100, 110, 111, 1111, 2110, 2100) and whole.us == 0
    one = simulated(problem, {0})
    assert [at for at, again in one.sequence if again] == [0] and one.sequence.index((0, True)) == 5
    assert one.loads == (100, 110, 11, 1011, 2010, 1100, 2100) and one.us == 1
    both = simulated(problem, {0, 1})
    assert both.sequence[4:6] == ((0, True), (1, True)) and both.us == 3
    assert both.loads == (100, 110, 11, 1001, 1100, 1110, 2110, 2100)


def test_nothing_is_made_again_where_all_fits() -> None:
    found = choose(by_hand(), 2110)
    assert found.run.again == () and found.fits and found.exact and found.run.us == 0


@pytest.mark.parametrize("seed", range(150))
def test_chains_are_solved_exactly(seed: int) -> None:
    draw = random.Random(seed)
    problem = drawn_chain(draw)
    whole = simulated(problem, frozenset())
    budget = int(whole.peak * draw.uniform(0.3, 1.0))
    fitting = [run.us for run in every_choice(problem) if run.peak <= budget]
    try:
        dropped = cheapest_on_chain(problem, budget)
    except NotAChain:
        pytest.fail("a chain was drawn")
    if not fitting:
        assert dropped is None
        return
    assert dropped is not None
    run = simulated(problem, dropped)
    assert run.peak <= budget and run.us == min(fitting)
    assert choose(problem, budget).exact


@pytest.mark.parametrize("seed", range(150))
def test_graphs_fit_or_say_so_and_bounds_hold(seed: int) -> None:
    draw = random.Random(seed)
    problem = drawn_graph(draw)
    budget = int(simulated(problem, frozenset()).peak * draw.uniform(0.5, 1.0))
    fitting = [run.us for run in every_choice(problem) if run.peak <= budget]
    found, least = choose(problem, budget), least_us(problem, budget)
    assert found.fits == (found.run.peak <= budget)
    assert_runs(problem, found.run)
    if least is None:
        assert not fitting and not found.fits
    else:
        assert all(us >= least - 1e-9 for us in (*fitting, *([found.run.us] if found.fits else [])))


@pytest.mark.parametrize("drawn", [drawn_chain, drawn_graph])
def test_a_budget_of_all_that_it_takes_drops_nothing(drawn) -> None:
    for seed in range(20):
        problem = drawn(random.Random(seed))
        whole = simulated(problem, frozenset())
        found = choose(problem, whole.peak)
        assert (found.run, found.fits, found.least_us, found.exact) == (whole, True, 0.0, True)


def test_a_long_chain_takes_about_its_root() -> None:
    count = 100
    operations = [Operation((at - 1,) if at else (), 1.0) for at in range(count)]
    values = [Value(at, 1) for at in range(count)]
    for place in reversed(range(count)):
        operations.append(Operation((place,), 1.0))
        values.append(Value(len(operations) - 1, 0))
    found = choose(Problem(tuple(operations), tuple(values), count), 22)
    assert found.fits and found.exact and found.run.us <= count


def test_what_is_no_chain_is_told() -> None:
    operations = (Operation(()), Operation((0,)), Operation((0, 1)), Operation((0, 1, 2)))
    problem = Problem(operations, tuple(Value(at, 1) for at in range(4)), 3)
    with pytest.raises(NotAChain, match="operation 2"):
        cheapest_on_chain(problem, 3)


def test_a_chain_whose_forward_operations_need_scratch_is_none() -> None:
    operations = (Operation(()), Operation((0,), 1.0, 30), Operation((1,)), Operation((0, 2)))
    problem = Problem(operations, tuple(Value(at, 20) for at in range(4)), 3)
    with pytest.raises(NotAChain, match="operation 1 needs scratch"):
        cheapest_on_chain(problem, 50)


def test_values_that_backward_reads_in_the_order_of_forward_are_no_chain() -> None:
    """The first would have to be kept until it is done with, or be made again before the second is."""
    operations = (Operation(()), Operation((0,)), Operation((1,)), Operation((0,)), Operation((1,)))
    problem = Problem(operations, tuple(Value(at, 1) for at in range(5)), 3)
    with pytest.raises(NotAChain, match="reads value 0 before it is done with value 1"):
        cheapest_on_chain(problem, 3)


def test_a_graph_that_no_choice_fits_is_answered_for_good() -> None:
    """No chain, and what its last operation reads is more than the budget."""
    operations = (Operation(()), Operation((0,)), Operation((0, 1)), Operation((0, 1, 2)))
    problem = Problem(operations, tuple(Value(at, 10) for at in range(4)), 3)
    assert least_us(problem, 25) is None
    found = choose(problem, 25)
    assert (found.fits, found.exact, found.least_us) == (False, True, 0.0)


def test_a_graph_within_the_budget_has_a_bound_and_may_not_be_the_best() -> None:
    """Two values from nothing, of which one has to be made again in the other's time."""
    operations = (
        Operation((), 3.0), Operation((), 5.0), Operation((), 1.0),
        Operation((2,)), Operation((1, 3)), Operation((0,)),
    )  # fmt: skip
    problem = Problem(operations, tuple(Value(at, size) for at, size in enumerate((50, 50, 60, 0, 0, 0))), 3)
    found = choose(problem, 110)
    assert (found.fits, found.exact, found.run.again) == (True, False, (0,))
    assert 0.0 < found.least_us <= found.run.us == 3.0
