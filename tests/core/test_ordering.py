"""Orders of execution: known examples, brute force, and properties that hold for any graph."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tvm_mxplan.core.ordering import Graph, Tensor, choose_order, peak_of
from tvm_mxplan.core.ordering.search import Machine, State, beam


def random_graph(seed: int, steps: int, density: float = 0.35) -> Graph:
    """Every step writes up to two tensors; some take bytes for themselves, some write over an operand."""
    rng = random.Random(seed)
    tensors = []
    for writer in range(steps):
        for _ in range(rng.choice((1, 1, 1, 2))):
            readers = tuple(step for step in range(writer + 1, steps) if rng.random() < density)
            tensors.append(Tensor(rng.randrange(1, 100), writer, readers))
    before = [(a, b) for a in range(steps) for b in range(a + 1, steps) if rng.random() < 0.05]
    transient = [rng.choice((0, 0, rng.randrange(60))) for _ in range(steps)]
    return Graph(steps, tuple(tensors), tuple(transient), tuple(before))


def is_legal(graph: Graph, order: tuple[int, ...]) -> bool:
    place = {step: at for at, step in enumerate(order)}
    return sorted(order) == list(range(graph.steps)) and all(
        place[earlier] < place[later] for earlier, later in graph.edges()
    )


def best_by_force(graph: Graph) -> int:
    return min(peak_of(graph, order) for order in legal_orders(graph, ()))


def legal_orders(graph: Graph, begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All that begin with ``begun``."""
    if len(begun) == graph.steps:
        yield begun
    for step in range(graph.steps):
        waits = any(later == step and earlier not in begun for earlier, later in graph.edges())
        if step not in begun and not waits:
            yield from legal_orders(graph, (*begun, step))


def branches(large: int = 100, small: int = 1, count: int = 3) -> Graph:
    """Each branch keeps little of a large tensor; in the given order all the large ones come first."""
    tensors = [Tensor(large, at, (count + at,)) for at in range(count)]
    tensors += [Tensor(small, count + at, (2 * count,)) for at in range(count)]
    return Graph(2 * count + 1, tuple(tensors), (0,) * (2 * count + 1))


def test_branches_run_one_after_the_other():
    graph = branches()
    assert peak_of(graph, range(7)) == 301
    order = choose_order(graph)
    assert (order.peak, order.proven) == (103, True)
    assert peak_of(graph, order.steps) == 103
    assert is_legal(graph, order.steps)


def test_the_larger_branch_comes_first():
    """The rest of a branch waits while the other runs; it should be the 2 bytes, not the 9."""
    tensors = (
        Tensor(5, 0, (1, 3)),
        Tensor(40, 1, (2,)),
        Tensor(9, 2, (5,)),
        Tensor(80, 3, (4,)),
        Tensor(2, 4, (5,)),
    )
    graph = Graph(6, tensors, (0,) * 6)
    assert peak_of(graph, range(6)) == 5 + 9 + 80
    order = choose_order(graph)
    assert order.peak == 5 + 80 + 2
    assert order.steps.index(3) < order.steps.index(1)


def test_an_order_that_is_the_best_is_kept():
    graph = Graph(4, tuple(Tensor(10, at, (at + 1,)) for at in range(3)), (0,) * 4)
    order = choose_order(graph)
    assert (order.steps, order.peak, order.proven) == ((0, 1, 2, 3), 20, True)


def test_nothing_to_order():
    assert choose_order(Graph(0, (), ())).steps == ()
    assert choose_order(Graph(1, (), (7,))).peak == 7
    assert peak_of(Graph(0, (), ()), ()) == choose_order(Graph(0, (), ())).peak == 0
    assert peak_of(Graph(1, (), (7,)), (0,)) == 7


def test_what_a_step_takes_for_itself_counts():
    """Writing over an operand saves bytes, a scratchpad costs them."""
    tensors = (Tensor(10, 0, (1,)), Tensor(10, 1, ()))
    assert peak_of(Graph(2, tensors, (0, 0)), (0, 1)) == 20
    assert peak_of(Graph(2, tensors, (0, -10)), (0, 1)) == 10
    assert peak_of(Graph(2, tensors, (0, 5)), (0, 1)) == 25


@pytest.mark.parametrize("steps", [4, 6, 7])
def test_equal_to_brute_force(steps):
    improved = 0
    for seed in range(60 if steps < 7 else 25):
        graph = random_graph(seed, steps)
        order = choose_order(graph)
        assert is_legal(graph, order.steps)
        assert order.proven
        assert order.peak == peak_of(graph, order.steps) == best_by_force(graph)
        improved += order.peak < peak_of(graph, range(steps))
    assert improved > 5, "the cases need orders that can be improved"


@pytest.mark.slow
@pytest.mark.parametrize("steps", [8, 9])
def test_equal_to_brute_force_of_larger_graphs(steps):
    for seed in range(10):
        graph = random_graph(1000 + seed, steps)
        assert choose_order(graph).peak == best_by_force(graph)


def test_bounded_search_is_legal_and_never_worse():
    improved = 0
    for seed in range(30):
        graph = random_graph(seed, 25, density=0.12)
        order = choose_order(graph, max_states=20, width=4)
        assert is_legal(graph, order.steps)
        assert order.peak == peak_of(graph, order.steps) <= peak_of(graph, range(25))
        improved += not order.proven and order.peak < peak_of(graph, range(25))
    assert improved > 5


def test_the_beam_alone_finds_the_order_of_branches():
    graph = branches(count=12)
    found = beam(Machine(graph), State.start(), range(25), peak_of(graph, range(25)), 8)
    assert found.peak == 112


def test_the_same_graph_gets_the_same_order():
    graph = random_graph(3, 30, density=0.1)
    assert choose_order(graph) == choose_order(graph)


def test_names_of_steps_do_not_matter():
    """Another legal numbering has the same best peak."""
    for seed in range(20):
        graph = random_graph(seed, 7)
        order = choose_order(graph).steps
        new = {step: at for at, step in enumerate(order)}
        renamed = Graph(
            graph.steps,
            tuple(Tensor(t.nbytes, new[t.writer], tuple(new[r] for r in t.readers)) for t in graph.tensors),
            tuple(graph.transient[step] for step in order),
            tuple((new[a], new[b]) for a, b in graph.before),
        )
        assert choose_order(renamed).peak == choose_order(graph).peak


def test_a_long_network_of_blocks_falls_into_parts():
    """Sixty blocks of three branches: exact, though the whole has far too many sets of steps."""
    tensors, steps = [Tensor(10, 0, (1, 2, 3))], 1
    for _ in range(60):
        first = steps
        for branch in range(3):
            tensors.append(Tensor(50 + branch, first + branch, (first + 3 + branch,)))
            tensors.append(Tensor(5, first + 3 + branch, (first + 6,)))
        tensors.append(Tensor(10, first + 6, (first + 7, first + 8, first + 9)))
        steps += 7
    tensors[-1] = Tensor(10, steps - 1, ())
    graph = Graph(steps, tuple(tensors), (0,) * steps)
    order = choose_order(graph)
    assert order.proven
    assert order.peak < peak_of(graph, range(steps))
    assert is_legal(graph, order.steps)


def stages(count: int, width: int = 5) -> Graph:
    """The branches of ``branches``, ``count`` times one after the other, meeting in a step each time."""
    size = 2 * width + 1
    tensors = []
    for at in range(0, count * size, size):
        one = branches(count=width)
        tensors += [Tensor(t.nbytes, at + t.writer, tuple(at + r for r in t.readers)) for t in one.tensors]
        following = range(at + size, min(at + size + width, count * size))
        tensors.append(Tensor(3, at + size - 1, tuple(following)))
    return Graph(count * size, tuple(tensors), (0,) * (count * size))


def test_parts_are_proven_one_by_one():
    """Searched as a whole, ten stages of five branches have more states than there is time for."""
    alone, together = choose_order(stages(1)), choose_order(stages(10), max_states=400)
    assert alone.proven and together.proven
    assert 0 < alone.states <= together.states <= 10 * max(alone.states, 40)
    assert together.peak <= alone.peak + 3
    assert is_legal(stages(10), together.steps)
