"""Groups taken apart: the same bytes at the same steps, none twice, and still a valid plan."""

from __future__ import annotations

import random
from collections import Counter

from tvm_mxplan.core.allocation import Item, Plan, Problem, Rectangle, read_csv, validate, write_csv
from tvm_mxplan.core.allocation.flatten import flatten


def cells(problem: Problem, plan: Plan) -> Counter[tuple[int, int]]:
    """The number of times that each byte at each step is covered."""
    return Counter(
        (step, base + byte)
        for item, base in zip(problem.items, plan.offsets, strict=True)
        for r in item.rectangles
        for step in range(r.birth, r.death)
        for byte in range(r.offset, r.end)
    )


def test_a_concatenation_becomes_three_parts(tmp_path):
    whole = Item("cat", (Rectangle(1, 4, 0, 100), Rectangle(2, 5, 100, 80), Rectangle(3, 5, 0, 180)))
    plan = Plan((64,), {"global": 244})
    problem, flat = flatten(Problem((whole,)), plan)
    assert [(item.name, item.rectangles[0]) for item in problem.items] == [
        ("cat.0", Rectangle(1, 2, 0, 100)),
        ("cat.1", Rectangle(2, 5, 0, 180)),
    ]
    assert flat.offsets == (64, 64)
    write_csv(tmp_path / "plan.csv", problem, flat)
    assert len(read_csv(tmp_path / "plan.csv").items) == 2


def test_single_rectangles_keep_their_names():
    problem = Problem((Item("a", (Rectangle(0, 2, 0, 64),)),))
    flat, _ = flatten(problem, Plan((128,), {"global": 192}))
    assert [item.name for item in flat.items] == ["a"]


def test_random_groups_cover_the_same_cells_once():
    rng = random.Random(0)
    for _ in range(200):
        rectangles = []
        for _ in range(rng.randint(1, 5)):
            birth, offset = rng.randrange(6), rng.randrange(8)
            rectangles.append(Rectangle(birth, birth + rng.randint(1, 4), offset, rng.randint(0, 6)))
        problem = Problem((Item("group", tuple(rectangles), 1),))
        plan = Plan((rng.randrange(5),), {"global": 100})
        flat = flatten(problem, plan)
        assert set(cells(problem, plan)) == set(cells(*flat))
        assert set(cells(*flat).values()) <= {1}
        assert validate(*flat) == []
