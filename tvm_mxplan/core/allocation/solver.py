"""Solves a problem: quick plans first, then the exact search, until the lower bound is reached.

The work is done in C++ (``native``), one connected part of one arena after the other. Its limit is a number
of placements, which gives the same plan anywhere; a limit in seconds is kept only if asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from . import native
from .bounds import instance_bound
from .instance import Instance, instances
from .plan import Plan, Status
from .problem import Problem

DEFAULT_MAX_NODES = 1_000_000
"""Placements of the exact search, of which one counts for more among more than 512 items: some seconds."""

UNLIMITED = 2**62
"""Placements where only time is to limit the search."""

# The most bytes that the search may stack without its numbers leaving 64 bits.
_MOST_BYTES = 2**60


def solve(
    problem: Problem,
    *,
    seconds: float | None = None,
    max_nodes: int | None = None,
    fit_only: bool = False,
) -> Plan:
    """Find offsets of small height.

    Parameters
    ----------
    problem : Problem
        The items.  Their order and names have no influence on the height.
    seconds : float, optional
        Stop about then with the best plan so far.  Results may then differ from run to run.
    max_nodes : int, optional
        Placements that the exact search may make in all; by default ``DEFAULT_MAX_NODES``, or with
        ``seconds`` any number.
    fit_only : bool
        Stop with the first plan that fits ``problem.capacity``, however much lower others may be.

    Returns
    -------
    Plan
        Always complete and valid, also where it exceeds ``problem.capacity``.
    """
    if max_nodes is None:
        max_nodes = DEFAULT_MAX_NODES if seconds is None else UNLIMITED
    limits = _Limits(problem.capacity, fit_only, seconds, max_nodes)
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
            answer = _solve_part(instance, limits.request(bound, target, nodes))
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


class _Limits:
    """The budget of a call of ``solve``, and the result it is content with."""

    def __init__(
        self,
        capacity: int | None,
        fit_only: bool,
        seconds: float | None,
        max_nodes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capacity = -1 if capacity is None else min(capacity, _MOST_BYTES)
        self._fit_only = fit_only and capacity is not None
        self._clock = clock
        self._deadline = None if seconds is None else clock() + seconds
        self._max_nodes = min(max_nodes, UNLIMITED)

    def request(self, floor: int, goal: int, nodes: int) -> native.Request:
        """Makes the request for the next part, after ``nodes`` placements."""
        seconds = -1.0 if self._deadline is None else max(0.0, self._deadline - self._clock())
        left = max(0, self._max_nodes - nodes)
        return native.Request(floor, goal, self._capacity, self._fit_only, left, seconds)


def _solve_part(instance: Instance, request: native.Request) -> native.Answer:
    stacked = _stacked(instance)
    largest = max(shape.alignment for shape in instance.shapes)
    return native.plan(instance, request) if stacked.height + largest <= _MOST_BYTES else stacked


def _stacked(instance: Instance) -> native.Answer:
    """Every item on top of the one before: for more bytes than there are anywhere."""
    bases, top = [], 0
    for shape in instance.shapes:
        bases.append(-(-top // shape.alignment) * shape.alignment)
        top = bases[-1] + shape.extent
    return native.Answer(bases, top, proven=False, nodes=0)
