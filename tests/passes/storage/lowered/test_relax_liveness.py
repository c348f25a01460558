"""Lives of allocations, on traces by hand: calls, branches, and what waits for the other branch."""

from __future__ import annotations

import random

import pytest

from tvm_mxplan.passes.storage.relax_aliases import Allocation, Branch, Node, Places, StorageStep, Trace
from tvm_mxplan.passes.storage.relax_liveness import Lives, find_lives


def call(*tensors: int) -> StorageStep:
    return StorageStep(None, None, tuple(Places(frozenset([tensor]), True) for tensor in tensors))  # type: ignore[arg-type]


def branch(condition: int, then: list[Node], otherwise: list[Node], *joined: tuple[int, int]) -> Branch:
    return Branch(frozenset([condition]), tuple(then), tuple(otherwise), joined)


def lives_of(count: int, *nodes: Node) -> Lives:
    return find_lives(Trace([None] * count, nodes))  # type: ignore[list-item]


def made(tensor: int, *reads: int) -> list[Node]:
    """A tensor is allocated and written by the call behind it."""
    return [Allocation(tensor), call(*reads, tensor)]


def test_a_life_is_from_the_allocation_to_the_last_call() -> None:
    nodes = [*made(0), *made(1, 0), call(1), *made(2, 1), Allocation(3)]
    lives = lives_of(4, *nodes)
    assert lives.intervals == [[(0, 2)], [(1, 4)], [(3, 4)], []]
    assert lives.count == 4
    assert lives.steps == list(enumerate(node for node in nodes if isinstance(node, StorageStep)))
    assert lives.last == {0: frozenset(), 1: {0}, 2: frozenset(), 3: {1, 2}}


def test_no_call_means_no_life() -> None:
    lives = lives_of(1, Allocation(0))
    assert (lives.intervals, lives.count, lives.steps, lives.last) == ([[]], 0, [], {})


def test_every_field_of_a_tuple_is_touched() -> None:
    nested = StorageStep(None, None, ((Places(frozenset([0])), (Places(frozenset([1])),)), Places()))  # type: ignore[arg-type]
    assert lives_of(2, nested).intervals == [[(0, 1)], [(0, 1)]]


def test_bytes_wait_for_the_second_branch_but_are_free_in_the_first() -> None:
    """The picture at the top of the file; the condition is 3."""
    fork = branch(3, made(1), made(2, 0))
    lives = lives_of(4, Allocation(3), *made(0), fork)
    assert lives.intervals == [[(0, 2), (3, 4)], [(2, 3)], [(3, 4)], [(0, 2)]]
    assert [time for time, _ in lives.steps] == [0, 2, 3]
    assert lives.count == 4
    assert (lives.last[2], lives.last[3]) == ({1}, {0, 2})


def test_what_is_read_behind_a_branch_lives_through_both_sides() -> None:
    fork = branch(1, [call(2)], [call(2)])
    lives = lives_of(3, *made(0), fork, call(0))
    assert lives.intervals == [[(0, 5)], [(0, 2)], [(0, 4)]]
    assert [lives.last[time] for time in (0, 2, 3, 4)] == [set(), {2}, {2}, {0}]


def test_a_result_of_one_side_does_not_exist_on_the_other() -> None:
    fork = branch(0, [*made(1), call(3)], [*made(2), call(3)], (1, 2))
    lives = lives_of(4, *made(0), fork, call(1, 2))
    assert lives.intervals == [[(0, 2)], [(2, 4), (6, 7)], [(4, 7)], [(0, 6)]]
    assert lives.joined == [(1, 2)]
    assert lives.last[6] == {1, 2}


def test_pairs_of_inner_branches_are_told_and_made_there_too() -> None:
    inner = branch(0, made(1), made(2), (1, 2))
    outer = branch(0, [inner], made(3), (1, 3))
    lives = lives_of(4, *made(0), outer, call(1, 2, 3))
    assert sorted(lives.joined) == [(1, 2), (1, 3)]
    assert lives.intervals[1:] == [[(3, 4), (6, 7)], [(4, 5), (6, 7)], [(5, 7)]]


# --- against runs ------------------------------------------------------------------------------------------


def some_nodes(chance: random.Random, seen: list[int], tensors: int, depth: int) -> list[Node]:
    nodes: list[Node] = []
    for _ in range(chance.randint(1, 5)):
        if depth and chance.random() < 0.4:
            sides = [some_nodes(chance, list(seen), tensors, depth - 1) for _ in range(2)]
            nodes.append(branch(chance.choice(seen), *sides))
        else:
            nodes.append(call(*chance.sample(seen, chance.randint(1, min(3, len(seen))))))
    return nodes


def paths(nodes: list[Node], lives: Lives, clock: list[int]) -> list[list[tuple[int, frozenset[int]]]]:
    """Every run, as times with what is touched then; ``clock`` counts as the text does."""
    found: list[list[tuple[int, frozenset[int]]]] = [[]]
    for node in nodes:
        time = clock[0]
        clock[0] += 1
        ways = [[(time, node.touches)]]  # type: ignore[union-attr]
        if isinstance(node, Branch):
            sides = [paths(list(side), lives, clock) for side in (node.then, node.otherwise)]
            ways = [[*ways[0], *path] for side in sides for path in side]
        found = [[*path, *way] for path in found for way in ways]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_bytes_live_wherever_some_run_reads_them_later(seed: int) -> None:
    """By following every run: between two touches of a tensor it lives at each of the run's times."""
    chance = random.Random(seed)
    nodes = some_nodes(chance, list(range(4)), 4, 2)
    lives = lives_of(4, *nodes)
    expected: list[set[int]] = [set() for _ in range(4)]
    for path in paths(nodes, lives, [0]):
        for at, (_, touched) in enumerate(path):
            for tensor in touched:  # whatever the run passes before this touch: the bytes are its own by then
                expected[tensor] |= {time for time, _ in path[: at + 1]}
    found = [{time for low, high in own for time in range(low, high)} for own in lives.intervals]
    assert found == expected
    assert all(low < high for own in lives.intervals for low, high in own)
