"""Races the exact search over orders and heights: many short searches before few long ones.

A search that is lucky with its order needs little more than one node for each item; one that is not
may need millions.  So every order gets a few nodes, for the height aimed at and then for heights
halfway between what is known to be too low and what is known to do; then all get four times as many.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .heuristics import Bases, height_of
from .instance import Instance
from .interlock import search_zones
from .neighbours import Neighbours, neighbours, step_of
from .orders import Order, order_by
from .search import Outcome, Search, Tie, Verdict

# The first limit of a search, in nodes for each item, and its growth from round to round.
_FIRST_LIMIT = 4
_GROWTH = 4
# Beyond this many items the exact search would need too much memory for too little.
MAX_ITEMS = 3000
# Beyond this many items nothing is proven about groups that interlock.
_MAX_INTERLOCKED = 32

_RUNNERS: tuple[tuple[str, Tie], ...] = (
    ("A", Tie.TIGHTEST),
    ("S", Tie.TIGHTEST),
    ("TWA", Tie.ORDER),
    ("W", Tie.TIGHTEST),
    ("A", Tie.ORDER),
    ("TAW", Tie.ORDER),
    ("WAT", Tie.ORDER),
    ("TWA", Tie.TIGHTEST),
    ("S", Tie.ORDER),
    ("W", Tie.ORDER),
)


@dataclass(slots=True)
class Standing:
    """What is known of an instance: the best plan, and that nothing below ``floor`` is possible."""

    bases: Bases
    height: int
    floor: int
    nodes: int = 0


class Race:
    """The race for one instance.

    Parameters
    ----------
    instance : Instance
        What to lay out.
    bases : list of int
        A plan to beat.
    goal : int
        Height at which to stop; nothing below it is possible, or of use.
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
        self.standing = Standing(bases, height_of(instance, bases), goal)

    def run(self) -> Standing:
        """Run until the goal is reached or proven impossible as far as it is, or a limit."""
        standing, limit, number = self.standing, _FIRST_LIMIT * len(self._instance.shapes), 0
        while not self._over():
            runners = list(_runners(self._instance, number))
            too_low = standing.floor - 1
            for height in self._heights():
                if too_low < height < standing.height and not self._attempt(height, runners, limit):
                    too_low = height
            while standing.height - max(too_low, standing.floor - 1) > self._step and not self._over():
                middle = (max(too_low, standing.floor - 1) + standing.height) // 2
                if not self._attempt(middle, runners, limit):
                    too_low = middle
            limit, number = limit * _GROWTH, number + 1
        return standing

    def _heights(self) -> Iterator[int]:
        yield self._goal
        if self._capacity is not None:
            yield self._capacity

    @property
    def exhausted(self) -> bool:
        """True if no lower plan is possible, or none that would be of use."""
        return self.standing.height - self._step < self.standing.floor

    def _over(self) -> bool:
        standing = self.standing
        return (
            self.exhausted
            or standing.nodes >= self._max_nodes
            or self._expired()
        )

    def _attempt(self, height: int, runners: Sequence[tuple[Order, Tie]], limit: int) -> bool:
        """Look for a plan of ``height``; True if something came to be known."""
        for order, tie in runners:
            if self._over():
                return False
            search = Search(self._instance, self._near, order, tie, height)
            outcome = search.run(min(limit, self._max_nodes - self.standing.nodes), self._expired)
            if self._note(outcome, height):
                return True
        if self._instance.rigid and len(self._instance.shapes) <= _MAX_INTERLOCKED:
            outcome = search_zones(
                self._instance, self._near, height, min(limit, self._max_nodes - self.standing.nodes)
            )
            return self._note(outcome, height)
        return False

    def _note(self, outcome: Outcome, height: int) -> bool:
        standing = self.standing
        standing.nodes += outcome.nodes
        if outcome.bases is not None:
            standing.bases, standing.height = outcome.bases, height_of(self._instance, outcome.bases)
        elif outcome.verdict is Verdict.IMPOSSIBLE:
            standing.floor = height + 1
        return outcome.verdict is not Verdict.UNKNOWN


def _runners(instance: Instance, number: int) -> Iterator[tuple[Order, Tie]]:
    """Orders for a round: the same ones always, and from the second round on also shuffled ones."""
    seen = set()
    for recipe, tie in _RUNNERS:
        runner = (order_by(instance, recipe), tie)
        if runner not in seen:
            seen.add(runner)
            yield runner
    for seed in range(6 if number else 0):
        dice = random.Random(100 * number + seed)
        blur = [1 + dice.random() for _ in instance.shapes]
        recipe = "AWS"[seed % 3]
        yield order_by(instance, recipe, blur), (Tie.TIGHTEST, Tie.ORDER)[seed % 2]
