"""Solves a problem: quick plans first, then the exact search, until the lower bound is reached.

All limits are counts, so that the same problem gives the same plan anywhere; a limit in seconds is
kept only if asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .bounds import instance_bound
from .heuristics import Bases, best_fit, first_fit, height_of, settle, skyline
from .instance import Instance, instances
from .orders import conflicts, orders
from .plan import Plan, Status
from .problem import Problem
from .race import Race

DEFAULT_MAX_NODES = 30_000
# Vector operations that the quick plans may spend, as items times placed items.
_QUICK_WORK = 4_000_000_000
# Pairs of items alive together beyond which the exact search would need too much memory.
_MAX_PAIRS = 250_000


@dataclass(slots=True)
class Answer:
    """Bases for one connected part."""

    bases: Bases
    height: int
    proven: bool = False
    nodes: int = 0


def solve(problem: Problem, *, seconds: float | None = None, max_nodes: int = DEFAULT_MAX_NODES) -> Plan:
    """Find offsets of small height.

    Parameters
    ----------
    problem : Problem
        The items.  Their order and names have no influence on the height.
    seconds : float, optional
        Stop about then with the best plan so far.  Results may then differ from run to run.
    max_nodes : int
        Placements that the exact search may make in all.

    Returns
    -------
    Plan
        Always complete and valid, also where it exceeds ``problem.capacity``.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    expired = (lambda: False) if deadline is None else (lambda: time.monotonic() >= deadline)
    offsets = [0] * len(problem.items)
    heights: dict[str, int] = {}
    bounds: dict[str, int] = {}
    proven, nodes = True, 0
    for scope in problem.scopes:
        parts = [(instance_bound(instance), instance) for instance in instances(problem, scope)]
        parts.sort(key=lambda part: -part[0])
        bounds[scope] = parts[0][0] if parts else 0
        target, proven_height = bounds[scope], bounds[scope]
        for bound, instance in parts:
            answer = _solve_part(instance, bound, target, problem.capacity, max_nodes - nodes, expired)
            nodes += answer.nodes
            target = max(target, answer.height)
            if answer.proven:
                proven_height = max(proven_height, answer.height)
            for member, base in zip(instance.members, answer.bases, strict=True):
                offsets[member] = base
        heights[scope] = target
        proven = proven and proven_height == target
    if heights == bounds:
        status = Status.LOWER_BOUND
    elif proven:
        status = Status.EXHAUSTED
    else:
        status = Status.FEASIBLE
    return Plan(tuple(offsets), heights, bounds, status, nodes)


def _solve_part(
    instance: Instance,
    bound: int,
    target: int,
    capacity: int | None,
    max_nodes: int,
    expired: Callable[[], bool],
) -> Answer:
    best: Answer | None = None
    for bases in _quick_plans(instance):
        height = height_of(instance, bases)
        if best is None or height < best.height:
            best = Answer(bases, height)
        if best.height <= target or expired():
            break
    assert best is not None
    if best.height <= target or max_nodes <= 0 or expired() or conflicts(instance) > _MAX_PAIRS:
        return best
    race = Race(instance, best.bases, bound, target, capacity, max_nodes, expired)
    standing = race.run()
    return Answer(standing.bases, standing.height, race.exhausted, standing.nodes)


def _quick_plans(instance: Instance) -> Iterator[Bases]:
    """Plans in the order in which they usually help; as many as the work allows."""
    count = sum(len(shape.blocks) for shape in instance.shapes)
    plans = max(4, _QUICK_WORK // (count * count))
    for order in orders(instance):
        for place in (best_fit, first_fit, skyline):
            if plans <= 0:
                return
            plans -= 2
            bases = place(instance, order)
            yield bases
            yield settle(instance, bases)
