"""The exact searches by themselves, without quick plans before them, at and below the optimum."""

import pytest
from allocation_cases import brute_force, random_groups, random_singles, single, tight

from tvm_mxplan.core.allocation import Item, Plan, Problem, Rectangle, validate
from tvm_mxplan.core.allocation.instance import Instance, instances, outline
from tvm_mxplan.core.allocation.interlock import search_zones
from tvm_mxplan.core.allocation.neighbours import neighbours, step_of, zones
from tvm_mxplan.core.allocation.orders import orders
from tvm_mxplan.core.allocation.search import Outcome, Search, Tie, Verdict

KINDS = [random_singles, tight, random_groups, lambda seed: random_singles(seed, items=6, alignment=2)]


def check(problem: Problem, instance: Instance, outcome: Outcome, height: int) -> None:
    """A plan that was found is valid and not above ``height``."""
    assert outcome.bases is not None
    offsets = [0] * len(problem.items)
    for member, base in zip(instance.members, outcome.bases, strict=True):
        offsets[member] = base
    items = tuple(problem.items[member] for member in instance.members)
    part = Plan(tuple(offsets[member] for member in instance.members), {"global": height})
    assert validate(Problem(items, height), part) == []


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", KINDS)
def test_every_order_finds_the_optimum_and_nothing_below(kind, seed: int) -> None:
    problem = kind(seed)
    for instance in instances(problem, "global"):
        items = tuple(problem.items[member] for member in instance.members)
        optimum, near = brute_force(Problem(items)), neighbours(instance)
        for order in orders(instance)[:3]:
            for tie in Tie:
                found = Search(instance, near, order, tie, optimum).run(100_000, lambda: False)
                below = Search(instance, near, order, tie, optimum - 1).run(100_000, lambda: False)
                if found.verdict is Verdict.FOUND:
                    check(problem, instance, found, optimum)
                else:
                    # Only groups that interlock are beyond this search, and then it claims nothing.
                    assert instance.rigid and found.verdict is Verdict.UNKNOWN
                assert below.verdict is Verdict.IMPOSSIBLE or (
                    instance.rigid and below.verdict is Verdict.UNKNOWN
                )


@pytest.mark.parametrize("seed", range(60))
def test_the_search_by_pairs_is_exact_for_groups_too(seed: int) -> None:
    problem = random_groups(seed)
    for instance in instances(problem, "global"):
        items = tuple(problem.items[member] for member in instance.members)
        optimum, near = brute_force(Problem(items)), neighbours(instance)
        check(problem, instance, search_zones(instance, near, optimum, 100_000, lambda: False), optimum)
        below = search_zones(instance, near, optimum - 1, 100_000, lambda: False)
        assert below.verdict is Verdict.IMPOSSIBLE


def test_limits_end_the_search_without_a_claim() -> None:
    problem = tight(1, height=30, items=10)
    (instance, *_) = instances(problem, "global")
    near, order = neighbours(instance), orders(instance)[0]
    for max_nodes, expired in ((0, False), (1, True)):
        outcome = Search(instance, near, order, Tie.ORDER, 30).run(max_nodes, lambda: expired)  # noqa: B023
        assert outcome.verdict is Verdict.UNKNOWN
        assert outcome.nodes <= max_nodes


def test_two_rectangles_stand_above_or_below() -> None:
    (instance,) = instances(Problem((single("a", 0, 2, 5), single("b", 1, 3, 7))), "global")
    b, a = sorted(instance.shapes, key=lambda shape: -shape.extent)
    (_, below), (above, _) = zones(a, b)
    assert (below, above) == (-7, 5)


def test_steps_become_sections() -> None:
    """Of ten steps only those two matter at which all that meets anything is alive."""
    items = (single("a", 0, 4, 1), single("b", 3, 8, 2), single("c", 6, 10, 3))
    (instance,) = instances(Problem(items), "global")
    assert instance.sections == 2
    assert [(s.first, s.last) for s in instance.shapes] == [(0, 1), (0, 2), (1, 2)]


def test_aliases_melt_into_their_parent() -> None:
    parent, view, chained = Rectangle(0, 4, 0, 100), Rectangle(1, 3, 64, 36), Rectangle(4, 6, 0, 100)
    assert outline([parent, view, chained]) == ((0, 6, 0, 100),)


def test_items_that_never_meet_are_instances_of_their_own() -> None:
    bridge = Item("bridge", (Rectangle(0, 1, 0, 4), Rectangle(5, 6, 0, 4)), 1)
    items = (bridge, single("left", 0, 1, 4), single("middle", 2, 4, 4), single("right", 5, 6, 4))
    assert sorted(len(instance.shapes) for instance in instances(Problem(items), "global")) == [1, 3]


def test_heights_come_in_steps() -> None:
    (instance,) = instances(Problem((single("a", 0, 2, 96, 64), single("b", 0, 2, 160, 64))), "global")
    assert step_of(instance) == 32
    (instance,) = instances(Problem((single("a", 0, 2, 96), single("b", 0, 2, 160))), "global")
    assert step_of(instance) == 32
