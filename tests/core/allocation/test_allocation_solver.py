"""Heights equal brute force on small problems, and what must not matter does not."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from allocation_cases import (
    brute_force,
    dense_network,
    random_groups,
    random_singles,
    renamed,
    residual_network,
    retimed,
    single,
    tight,
)

from tvm_mxplan.core.allocation import (
    Item,
    Plan,
    Problem,
    Rectangle,
    Status,
    lower_bound,
    native,
    solve,
    validate,
)
from tvm_mxplan.core.allocation.instance import Instance
from tvm_mxplan.core.allocation.solver import UNLIMITED, _Limits


def solved(problem: Problem) -> Plan:
    """The plan, which must be valid and no lower than the bound."""
    plan = solve(problem)
    assert validate(replace(problem, capacity=None), plan) == []
    assert plan.height >= plan.lower_bound == lower_bound(problem)
    return plan


def mixed_alignments(seed: int, items: int) -> Problem:
    """Alignment makes the lower bound unreachable in about a third of these."""
    dice = random.Random(seed)
    found = []
    for number in range(items):
        birth = dice.randrange(6)
        death = dice.randint(birth + 1, min(7, birth + 4))
        found.append(single(f"m{number}", birth, death, dice.randint(1, 6), dice.choice((1, 2, 3, 4))))
    return Problem(tuple(found))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_equal_to_brute_force(seed: int) -> None:
    kinds = (random_singles, tight, lambda seed: mixed_alignments(seed, 6), random_groups)
    problem = kinds[seed % 4](seed)
    plan = solved(problem)
    assert plan.status.is_optimal
    assert plan.height == brute_force(problem)


def test_some_of_these_need_the_search_and_its_proof() -> None:
    plans = [solve(mixed_alignments(seed, 6)) for seed in range(40)]
    assert sum(plan.status is Status.EXHAUSTED for plan in plans) >= 8
    assert sum(plan.nodes > 0 and plan.status is Status.LOWER_BOUND for plan in plans) >= 4


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", [random_groups, tight, random_singles])
def test_neither_names_nor_order_nor_stretching_matter(kind, seed: int) -> None:
    problem = kind(seed)
    plan = solved(problem)
    assert solved(renamed(problem, seed)).height == plan.height
    assert solved(retimed(problem, [7 * step * step + 3 for step in range(40)])).height == plan.height


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", [random_groups, tight, random_singles])
def test_time_backwards_keeps_the_optimum(kind, seed: int) -> None:
    problem = kind(seed)
    assert solved(retimed(problem, [40 - step for step in range(41)])).height == solved(problem).height


@pytest.mark.parametrize("seed", range(40))
def test_parts_that_never_meet_keep_the_maximum(seed: int) -> None:
    first, second = random_groups(seed), random_groups(seed + 1000)
    later = retimed(second, [step + 6 for step in range(40)])
    both = solved(Problem(first.items + later.items))
    assert both.height == max(solved(first).height, solved(second).height)
    assert both.status.is_optimal


@pytest.mark.parametrize("seed", range(20))
def test_scopes_are_arenas_of_their_own(seed: int) -> None:
    here, there = random_groups(seed), random_groups(seed + 1000)
    moved = tuple(replace(item, scope="local") for item in there.items)
    plan = solved(Problem(here.items + moved))
    assert plan.heights == {"global": solved(here).height, "local": solved(there).height}
    assert plan.height == sum(plan.heights.values())


def test_the_same_problem_gives_the_same_plan() -> None:
    problem = mixed_alignments(5, 9)
    assert solve(problem) == solve(problem)


PLANS = """
import sys
sys.path.insert(0, sys.argv[1])
from allocation_cases import random_groups, residual_network, tight
from tvm_mxplan.core.allocation import solve
problems = [*map(random_groups, range(20)), *map(tight, range(20)), residual_network(24)]
print([solve(problem) for problem in problems])
"""


def test_any_process_makes_the_same_plans() -> None:
    """Offsets, heights and the number of nodes do not hang on the seed of Python's hashes."""
    texts = {
        subprocess.run(
            [sys.executable, "-c", PLANS, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    (text,) = texts
    assert text.count("Plan(") == 41


def test_nothing_and_empty_buffers() -> None:
    assert solved(Problem(())).height == 0
    plan = solved(Problem((single("empty", 0, 3, 0, 64), single("full", 0, 3, 5, 64))))
    assert (plan.height, plan.status) == (5, Status.LOWER_BOUND)


def test_three_lives_that_overlap_by_pairs() -> None:
    plan = solved(Problem((single("a", 0, 2, 100), single("b", 1, 3, 80), single("c", 2, 4, 60))))
    assert (plan.height, plan.status, plan.nodes) == (180, Status.LOWER_BOUND, 0)


def test_a_buffer_goes_below_the_later_part_of_a_concatenation() -> None:
    """The second part is born at step 2; until then its bytes are free for ``b``."""
    concat = Item("concat", (Rectangle(0, 4, 0, 64), Rectangle(2, 4, 64, 64)))
    plan = solved(Problem((concat, Item("b", (Rectangle(0, 2, 0, 64),)))))
    assert plan.height == 128


def test_groups_that_interlock() -> None:
    """Two combs fit into each other only with neither wholly above the other one."""
    comb = (Rectangle(0, 2, 0, 1), Rectangle(0, 1, 1, 1), Rectangle(0, 2, 3, 1))
    other = (Rectangle(0, 2, 0, 1), Rectangle(0, 2, 3, 1))
    problem = Problem((Item("comb", comb, 1), Item("other", other, 1)))
    plan = solved(problem)
    assert plan.height == brute_force(problem) == 5
    assert plan.status.is_optimal


def test_a_capacity_neither_stops_nor_fails_the_solver() -> None:
    items = (single("a", 0, 2, 100), single("b", 0, 2, 50))
    small, large = solve(Problem(items, 120)), solve(Problem(items, 1000))
    assert small.height == large.height == 150
    assert not small.fits(120) and large.fits(1000)
    assert any("capacity 120" in reason for reason in validate(Problem(items, 120), small))


def test_a_plan_that_fits_ends_the_search_where_that_is_asked() -> None:
    problem = replace(tight(1, height=300, items=40), capacity=330)
    fitting, best = solve(problem, fit_only=True), solve(problem)
    assert fitting.fits(330) and validate(problem, fitting) == []
    assert best.height <= fitting.height
    assert fitting.nodes <= best.nodes


def test_a_limit_in_seconds_is_the_only_one() -> None:
    """However many placements fit into the time, and none after it: the clock here runs by itself."""
    ticks = iter(range(100))
    limits = _Limits(None, False, 7.0, UNLIMITED, lambda: float(next(ticks)))
    asked = [limits.request(floor=1, goal=2, nodes=nodes) for nodes in (0, 10**9)]
    assert [request.seconds for request in asked] == [6.0, 5.0]
    assert min(request.max_nodes for request in asked) > 10**15
    assert [limits.request(1, 2, 0).seconds for _ in range(8)][-1] == 0.0


def test_more_bytes_than_there_are_anywhere_are_stacked() -> None:
    plan = solved(Problem((single("a", 0, 2, 2**60 + 1), single("b", 1, 3, 5, 64))))
    assert plan.height in (2**60 + 6, 2**60 + 64 + 5, 2**60 + 65)


def test_only_what_may_leave_64_bits_is_stacked() -> None:
    """Two of the three are never there together."""
    for nbytes, height, status in (
        (2**58, 2**59, Status.LOWER_BOUND),
        (2**59, 3 * 2**59, Status.FEASIBLE),
    ):
        plan = solved(
            Problem((single("a", 0, 3, nbytes), single("b", 1, 2, nbytes), single("c", 2, 3, nbytes)))
        )
        assert (plan.height, plan.status, plan.nodes) == (height, status, 0)
    items = tuple(single(f"{n}", n, n + 2, 2**59 + n, 2**n) for n in range(3))
    assert solve(Problem(items)).offsets == (0, 2**59, 2**60 + 4)


def test_each_part_is_asked_for_what_is_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts of one arena: below the height of the taller one nothing is of use for the other."""
    asked: list[native.Request] = []
    plan = native.plan

    def noting(instance: Instance, request: native.Request) -> native.Answer:
        asked.append(request)
        return plan(instance, request)

    monkeypatch.setattr(native, "plan", noting)
    low, tall = single("low", 0, 2, 60), single("tall", 5, 8, 100)
    solved(Problem((low, single("more", 1, 3, 10), tall, single("beside", 6, 9, 30)), 500))
    assert [(request.floor, request.goal) for request in asked] == [(130, 130), (70, 130)]
    assert {request.capacity for request in asked} == {500}
    assert not any(request.fit_only for request in asked)
    asked.clear()
    solve(Problem((low,)), fit_only=True)
    assert [(request.capacity, request.fit_only, request.seconds) for request in asked] == [(-1, False, -1.0)]


def test_placements_are_the_limit_unless_there_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plan = native.plan
    monkeypatch.setattr(
        native, "plan", lambda part, request: asked.append(request.max_nodes) or plan(part, request)
    )
    problem = Problem((single("a", 0, 2, 60),))
    for limits in ({}, {"seconds": 5.0}, {"max_nodes": 7}, {"max_nodes": 7, "seconds": 5.0}):
        solve(problem, **limits)
    assert asked == [1_000_000, 2**62, 7, 7]


def test_limits_leave_a_valid_plan() -> None:
    problem = mixed_alignments(3, 12)
    for plan in (solve(problem, max_nodes=0), solve(problem, seconds=0.0), solve(problem, max_nodes=5)):
        assert validate(problem, plan) == []
        assert plan.nodes <= 5


def test_parts_share_the_limit() -> None:
    """Three arenas, each of which the search takes more than 40 placements for, get 40 together."""
    items = mixed_alignments(3, 12).items
    problem = Problem(tuple(replace(item, scope=scope) for scope in "abc" for item in items))
    assert solve(Problem(items)).nodes > 40
    assert 0 < solve(problem, max_nodes=40).nodes <= 40


@pytest.mark.parametrize(
    "problem",
    [residual_network(75), residual_network(150, seed=3), dense_network(4, 24), dense_network(4, 48)],
    ids=["residual307", "residual615", "dense104", "dense200"],
)
def test_networks_reach_the_lower_bound_without_search(problem: Problem) -> None:
    plan = solved(problem)
    assert plan.status is Status.LOWER_BOUND
    assert plan.nodes == 0
