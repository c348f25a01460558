"""Races the exact search over orders and heights: many short searches rather than few long ones.

A search that is lucky with its order and its height needs little more than one node for each item;
one that is not may need millions.  So there are several runners, each with an order of its own, and
each attempt is short.  First all try the height aimed at; then each in turn tries a height between
what is known to be too low and what is known to do; the limit doubles after each round.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from .heuristics import Bases, height_of
from .instance import Instance
from .interlock import search_zones
from .neighbours import Neighbours, neighbours, step_of
from .orders import Order, order_by
from .search import Search, Tie, Verdict

# Nodes that an attempt is worth however few the items.
_LEAST_NODES = 500
# Beyond this many items nothing is proven about groups that interlock.
_MAX_INTERLOCKED = 64

_RUNNERS: tuple[tuple[str, Tie], ...] = (
    ("A", Tie.TIGHTEST),
    ("S", Tie.TIGHTEST),
    ("TWA", Tie.ORDER),
    ("WAT", Tie.ORDER),
    ("A", Tie.ORDER),
    ("W", Tie.TIGHTEST),
    ("TAW", Tie.TIGHTEST),
    ("B", Tie.ORDER),
    ("TAW", Tie.ORDER),
    ("WAT", Tie.TIGHTEST),
)


@dataclass(slots=True)
class Standing:
    """What is known of an instance: the best plan, and that nothing below ``floor`` is possible."""

    bases: Bases
    height: int
    floor: int
    nodes: int = 0


@dataclass(slots=True)
class _Runner:
    """A way to search; without an order it is the search for groups that interlock."""

    order: Order | None
    tie: Tie = Tie.ORDER
    wins: int = 0


class Race:
    """The race for one instance.

    Parameters
    ----------
    instance : Instance
        What to lay out.
    bases : list of int
        A plan to beat.
    floor : int
        Nothing below this height is possible.
    goal : int
        Height at which to stop; nothing below it is of use.
    capacity : int, optional
        A height of special interest: aimed at before the others.
    max_nodes : int
        Limit of all searches together.
    expired : callable
        True if time is up.
    """

    def __init__(
        self,
        instance: Instance,
        bases: Bases,
        floor: int,
        goal: int,
        capacity: int | None,
        max_nodes: int,
        expired: Callable[[], bool],
    ) -> None:
        self._instance = instance
        self._goal = goal
        self._capacity = capacity
        self._max_nodes = max_nodes
        self._expired = expired
        self._near: Neighbours = neighbours(instance)
        self._step = step_of(instance)
        self.standing = Standing(bases, height_of(instance, bases), floor)

    @property
    def exhausted(self) -> bool:
        """True if it is proven that no lower plan is possible."""
        return self.standing.height - self._step < self.standing.floor

    def run(self) -> Standing:
        """Run until the goal is reached, the best plan is proven to be that, or a limit."""
        standing, runners = self.standing, _runners(self._instance)
        limit = max(_LEAST_NODES, 5 * len(self._instance.shapes) // 2)
        for height in (self._goal, -1 if self._capacity is None else self._capacity):
            for runner in runners:
                if standing.floor <= height < standing.height and not self._over():
                    self._attempt(height, runner, limit)
        limit = max(_LEAST_NODES, 4 * len(self._instance.shapes))
        fractions = _fractions()
        for number in count():
            # Those that won so far go first.
            for runner in sorted(runners, key=lambda runner: -runner.wins):
                if self._over():
                    return standing
                lowest = max(standing.floor, self._goal)
                drop = max(self._step, int((standing.height - lowest) * next(fractions)))
                self._attempt(max(lowest, standing.height - drop), runner, limit)
            limit *= 2
            runners += _shuffled_runners(self._instance, number)
        return standing

    def _over(self) -> bool:
        standing = self.standing
        return (
            standing.height <= self._goal
            or self.exhausted
            or standing.nodes >= self._max_nodes
            or self._expired()
        )

    def _attempt(self, height: int, runner: _Runner, limit: int) -> None:
        """Let a runner look for a plan of ``height``, and note what comes of it."""
        standing, instance = self.standing, self._instance
        limit = min(limit, self._max_nodes - standing.nodes)
        if runner.order is None:
            outcome = search_zones(instance, self._near, height, limit, self._expired)
        else:
            outcome = Search(instance, self._near, runner.order, runner.tie, height).run(limit, self._expired)
        standing.nodes += outcome.nodes
        if outcome.bases is not None:
            standing.bases, standing.height = outcome.bases, height_of(instance, outcome.bases)
            runner.wins += 1
        elif outcome.verdict is Verdict.IMPOSSIBLE:
            standing.floor = height + 1


def _runners(instance: Instance) -> list[_Runner]:
    """A runner for each different order, and one for interlocking groups if there can be any."""
    different = dict.fromkeys((order_by(instance, recipe), tie) for recipe, tie in _RUNNERS)
    runners = [_Runner(order, tie) for order, tie in different]
    if instance.rigid and len(instance.shapes) <= _MAX_INTERLOCKED:
        runners.append(_Runner(None))
    return runners


def _shuffled_runners(instance: Instance, number: int) -> list[_Runner]:
    """More runners for a later round, with orders that are a little at random."""
    dice = random.Random(number)
    runners = []
    for recipe, tie in (("A", Tie.TIGHTEST), ("WAT", Tie.ORDER), ("TWA", Tie.ORDER), ("W", Tie.TIGHTEST)):
        blur = [1 + dice.random() for _ in instance.shapes]
        runners.append(_Runner(order_by(instance, recipe, blur), tie))
    return runners


def _fractions() -> Iterator[float]:
    """1/2, 1/4, 3/4, 1/8, 5/8, 3/8, 7/8, 1/16 and so on: evenly spread however many are taken."""
    for number in count(1):
        yield sum(int(bit) / 2**place for place, bit in enumerate(reversed(f"{number:b}"), 1))
