"""The exact searches by themselves, without quick plans before them, at and below the optimum."""

import random
import time

import pytest
from allocation_cases import brute_force, random_groups, random_singles, single, tight

from tvm_mxplan.core.allocation import Item, Plan, Problem, Rectangle, solve, validate
from tvm_mxplan.core.allocation.instance import Instance, instances, outline
from tvm_mxplan.core.allocation.native import Answer, Request, search

KINDS = [random_singles, tight, random_groups, lambda seed: random_singles(seed, items=6, alignment=2)]
BY_ZONES = -1
TIES = (0, 1, 2)


def searched(
    instance: Instance, height: int, order: int, tie: int = 0, max_nodes: int = 100_000, seconds: float = -1.0
) -> Answer:
    request = Request(floor=0, goal=0, capacity=height, fit_only=True, max_nodes=max_nodes, seconds=seconds)
    return search(instance, request, order, tie)


def has_groups(instance: Instance) -> bool:
    """Whether some item is more than one block from its base on."""
    return any(len(shape.blocks) > 1 or shape.blocks[0].low for shape in instance.shapes)


def check(problem: Problem, instance: Instance, answer: Answer, height: int) -> None:
    """A plan that was found is valid and not above ``height``."""
    assert answer.height >= 0
    items = tuple(problem.items[member] for member in instance.members)
    part = Plan(tuple(answer.bases), {"global": answer.height})
    assert validate(Problem(items, height), part) == []


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", KINDS)
def test_every_order_finds_the_optimum_and_nothing_below(kind, seed: int) -> None:
    problem = kind(seed)
    for instance in instances(problem, "global"):
        items = tuple(problem.items[member] for member in instance.members)
        optimum = brute_force(Problem(items))
        for order in range(3):
            for tie in TIES:
                found = searched(instance, optimum, order, tie)
                below = searched(instance, optimum - 1, order, tie)
                if found.height >= 0:
                    check(problem, instance, found, optimum)
                else:
                    # Only groups that interlock are beyond this search, and then it claims nothing.
                    assert has_groups(instance) and not found.proven
                assert below.height < 0
                assert below.proven or has_groups(instance)


@pytest.mark.parametrize("seed", range(60))
def test_the_search_by_pairs_is_exact_for_groups_too(seed: int) -> None:
    problem = random_groups(seed)
    for instance in instances(problem, "global"):
        items = tuple(problem.items[member] for member in instance.members)
        optimum = brute_force(Problem(items))
        check(problem, instance, searched(instance, optimum, BY_ZONES), optimum)
        below = searched(instance, optimum - 1, BY_ZONES)
        assert below.height < 0 and below.proven


@pytest.mark.parametrize("order", [0, BY_ZONES])
def test_limits_end_the_search_without_a_claim(order: int) -> None:
    problem = tight(1, height=30, items=10)
    (instance, *_) = instances(problem, "global")
    for answer in (
        searched(instance, 30, order, max_nodes=0),
        searched(instance, 30, order, max_nodes=1),
    ):
        assert answer.height < 0 and not answer.proven
        assert answer.nodes <= 1


def test_two_rectangles_stand_above_or_below() -> None:
    (instance,) = instances(Problem((single("a", 0, 2, 5), single("b", 1, 3, 7))), "global")
    for order in (0, BY_ZONES):
        assert sorted(searched(instance, 12, order).bases) in ([0, 5], [0, 7])
        assert searched(instance, 11, order).proven


def test_steps_become_sections() -> None:
    """Of ten steps only those two matter at which all that meets anything is alive."""
    items = (single("a", 0, 4, 1), single("b", 3, 8, 2), single("c", 6, 10, 3))
    (instance,) = instances(Problem(items), "global")
    assert instance.sections == 2
    assert [(block.first, block.last) for s in instance.shapes for block in s.blocks] == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]


def test_aliases_melt_into_their_parent() -> None:
    parent, view, chained = Rectangle(0, 4, 0, 100), Rectangle(1, 3, 64, 36), Rectangle(4, 6, 0, 100)
    assert outline([parent, view, chained]) == ((0, 6, 0, 100),)


def test_blocks_are_what_has_bytes() -> None:
    """Rectangles without bytes have no part in an outline, whatever they span and wherever they stand."""
    assert outline([Rectangle(0, 9, 2, 0), Rectangle(1, 3, 8, 4)]) == ((1, 3, 8, 12),)
    assert outline([Rectangle(0, 9, 2, 0)]) == outline([]) == ()
    apart = outline([Rectangle(0, 2, 8, 4), Rectangle(0, 3, 0, 4), Rectangle(1, 2, 2, 0)])
    assert apart == ((0, 2, 8, 12), (0, 3, 0, 4))
    assert outline([Rectangle(0, 2, 4, 4), Rectangle(0, 2, 0, 4)]) == ((0, 2, 0, 8),)


def test_items_that_never_meet_are_instances_of_their_own() -> None:
    bridge = Item("bridge", (Rectangle(0, 1, 0, 4), Rectangle(5, 6, 0, 4)), 1)
    items = (bridge, single("left", 0, 1, 4), single("middle", 2, 4, 4), single("right", 5, 6, 4))
    assert sorted(len(instance.shapes) for instance in instances(Problem(items), "global")) == [1, 3]


def test_heights_come_in_steps() -> None:
    """No plan of these ends between multiples of 32, which makes the first one found the last word."""
    for alignment in (64, 1):
        items = [single(f"{n}", 0, 2, nbytes, alignment) for n, nbytes in enumerate((96, 160, 32))]
        plan = solve(Problem(tuple(items)))
        assert plan.status.is_optimal and plan.nodes <= 4 * len(items)


def mixed_sizes(seed: int) -> Problem:
    """Eighty items of 64 to 192 bytes and of up to 64 MB, some hundred at a time."""
    dice = random.Random(seed)
    items = []
    for number in range(80):
        birth = dice.randrange(30)
        death = min(30, birth + 1 + int(dice.expovariate(1 / dice.choice([2, 8, 30]))))
        grains = dice.randrange(1, 1000) * dice.choice([1, 1000]) if dice.random() < 0.7 else 0
        nbytes = 64 * (grains or dice.choice([1, 2, 3]))
        items.append(single(str(number), birth, death, nbytes, 64))
    return Problem(tuple(items))


def test_small_items_that_wait_for_each_other_among_large_ones_cost_no_more() -> None:
    """They pushed each other up by 64 bytes a round, through millions of bytes, for 300 us a placement."""
    problem = mixed_sizes(40)
    before = time.process_time()
    plan = solve(problem, max_nodes=200_000)
    seconds = time.process_time() - before
    assert plan.nodes > 20_000 and validate(problem, plan) == []
    assert seconds < 3


def test_a_part_of_an_alignment_is_not_searched_for_long() -> None:
    """The bound leaves the topmost item alone its last bytes, which plans of these cannot."""
    dice = random.Random(174)
    items = []
    for number in range(60):
        birth = dice.randrange(20)
        items.append(single(str(number), birth, birth + dice.randint(1, 8), dice.randrange(1, 4000), 64))
    problem = Problem(tuple(items))
    plan = solve(problem)
    assert validate(problem, plan) == []
    assert 0 < plan.height - plan.lower_bound < 64
    assert 20_000 <= plan.nodes < 30_000
