"""Faults put into valid plans are caught, all of them, and nothing else is called a fault."""

import random
from dataclasses import replace

import pytest
from allocation_cases import clash, dense_network, many_buffers, random_groups, random_singles, single

from tvm_mxplan.core.allocation import Item, Plan, Problem, Rectangle, Status, solve, validate


def wrong(problem: Problem, offsets: tuple[int, ...], height: int) -> bool:
    """The definition of a wrong plan, written out."""
    items = problem.items
    return (
        any(base < 0 or base % item.alignment for item, base in zip(items, offsets, strict=True))
        or any(base + item.extent > height for item, base in zip(items, offsets, strict=True))
        or any(clash(items[i], offsets[i], items[j], offsets[j]) for i in range(len(items)) for j in range(i))
    )


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", [random_groups, random_singles, lambda seed: dense_network(2, 4)])
def test_an_offset_moved_is_caught_where_it_matters(kind, seed: int) -> None:
    problem = kind(seed)
    plan = solve(problem)
    assert validate(problem, plan) == []
    for index in range(len(problem.items)):
        for move in (64, -64, 1, -1):
            offsets = list(plan.offsets)
            offsets[index] += move
            fault = replace(plan, offsets=tuple(offsets))
            assert bool(validate(problem, fault)) == wrong(problem, fault.offsets, plan.height)


@pytest.mark.parametrize("seed", range(200))
def test_a_life_cut_short_is_caught(seed: int) -> None:
    """The planner believes that an item dies early and lets another one have its bytes."""
    dice = random.Random(seed)
    problem = random_singles(seed)
    victims = [item for item in problem.items if item.death - item.birth > 1]
    victim = dice.choice(victims)
    (r,) = victim.rectangles
    cut = replace(victim, rectangles=(replace(r, death=dice.randint(r.birth + 1, r.death - 1)),))
    thief = single("thief", cut.death, r.death, r.nbytes)
    believed = Problem((*(cut if item is victim else item for item in problem.items), thief))
    plan = solve(believed)
    offsets = list(plan.offsets)
    offsets[-1] = offsets[problem.items.index(victim)]
    true = Problem((*problem.items, thief))
    reasons = validate(true, replace(plan, offsets=tuple(offsets)))
    assert any("thief" in reason and victim.name in reason for reason in reasons)


@pytest.mark.parametrize("seed", range(25))
def test_every_overlap_is_named(seed: int) -> None:
    problem = random_groups(seed, items=8)
    offsets = tuple(random.Random(seed).randrange(0, 12, 2) for _ in problem.items)
    named = {
        frozenset((a.name, b.name))
        for i, (a, x) in enumerate(zip(problem.items, offsets, strict=True))
        for b, y in zip(problem.items[:i], offsets[:i], strict=True)
        if clash(a, x, b, y)
    }
    reasons = [reason for reason in validate(problem, Plan(offsets, {"global": 99})) if "overlap" in reason]
    assert {frozenset(reason.split("'")[1::2]) for reason in reasons} == named


SPOILT = [
    (lambda plan: replace(plan, offsets=plan.offsets[:-1]), "1 offsets for 2 items"),
    (lambda plan: replace(plan, offsets=(-64, 128)), "'a' stands at -64"),
    (lambda plan: replace(plan, offsets=(0, 160)), "'b' stands at 160, not a multiple of 64"),
    (lambda plan: replace(plan, offsets=(0, 64)), "'a' and 'b' overlap at byte 64, step 1"),
    (lambda plan: replace(plan, offsets=(0, 192)), "used up to byte 272, beyond its height 208"),
    (lambda plan: replace(plan, offsets=(0, 512)), "used up to byte 592, beyond the capacity 500"),
    (lambda plan: replace(plan, offsets=(0, 2**63 - 64)), "'b' ends at 9223372036854775824, beyond 64 bits"),
    (lambda plan: replace(plan, heights={}), "'global' has no height"),
    (lambda plan: replace(plan, lower_bounds={"global": 209}), "lower bound 209 is above the height 208"),
    (lambda plan: replace(plan, lower_bounds={"global": 200}), "said to equal the lower bound 200"),
]


@pytest.mark.parametrize("spoil, expected", SPOILT)
def test_each_fault_has_its_reason(spoil, expected: str) -> None:
    problem = Problem((single("a", 0, 2, 100, 64), single("b", 1, 3, 80, 64)), 500)
    plan = Plan((0, 128), {"global": 208}, {"global": 208}, Status.LOWER_BOUND)
    assert validate(problem, plan) == []
    assert any(expected in reason for reason in validate(problem, spoil(plan)))


def test_items_of_different_scopes_may_share_addresses() -> None:
    items = (single("a", 0, 2, 8), replace(single("b", 0, 2, 8), scope="local"))
    assert validate(Problem(items), Plan((0, 0), {"global": 8, "local": 8})) == []


def test_a_group_that_came_apart_is_caught() -> None:
    group = Item("group", (Rectangle(0, 4, 0, 64), Rectangle(2, 4, 64, 64)))
    problem, plan = Problem((group,)), Plan((64,), {"global": 192})
    assert validate(problem, plan, [[64, 128]]) == []
    assert "'group' came apart: rectangle 1 stands at 192" in validate(problem, plan, [[64, 192]])[0]
    assert "1 addresses for 2 rectangles" in validate(problem, plan, [[64]])[0]
    assert "addresses of 0 items, expected 1" in validate(problem, plan, [])[0]


def test_an_alias_lies_inside_its_parent() -> None:
    def reasons(*rectangles: Rectangle) -> list[str]:
        return validate(Problem((Item("x", rectangles),)), Plan((0,), {"global": 1000}))

    parent = Rectangle(0, 4, 0, 100)
    assert reasons(parent, Rectangle(1, 3, 40, 60)) == []
    assert reasons(parent, Rectangle(1, 3, 0, 60), Rectangle(1, 3, 40, 60)) == []
    assert reasons(parent, Rectangle(4, 6, 40, 100)) == []
    assert "rectangles 0 and 1 share bytes" in reasons(parent, Rectangle(1, 3, 40, 61))[0]


def test_big_plans_are_checked_quickly() -> None:
    problem = many_buffers(1000)
    plan = solve(problem, max_nodes=0)
    assert validate(problem, plan) == []
    offsets = list(plan.offsets)
    offsets[17] = offsets[18]
    moved = replace(problem.items[17], rectangles=problem.items[18].rectangles)
    items = (*problem.items[:17], moved, *problem.items[18:])
    assert validate(Problem(items), replace(plan, offsets=tuple(offsets))) != []
