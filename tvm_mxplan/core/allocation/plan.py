"""The answer to an allocation problem as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Status(Enum):
    """The knowledge about the height of a plan."""

    LOWER_BOUND = "optimal: equals the lower bound"
    EXHAUSTED = "optimal: search exhausted"
    FEASIBLE = "feasible: gap"

    @property
    def is_optimal(self) -> bool:
        """True if no plan of lesser height exists."""
        return self is not Status.FEASIBLE


@dataclass(frozen=True, slots=True)
class Plan:
    """Base offsets, and what is known about them.

    Parameters
    ----------
    offsets : tuple of int
        Base offset of each item, in the order of the problem.
    heights : dict
        Bytes of the arena of each scope.
    lower_bounds : dict
        Bytes that any plan needs in each scope.
    status : Status
        Whether the heights are known to be optimal, and why.
    nodes : int
        Placements that the exact search made; 0 if a heuristic reached the lower bound.
    """

    offsets: tuple[int, ...]
    heights: dict[str, int] = field(default_factory=dict)
    lower_bounds: dict[str, int] = field(default_factory=dict)
    status: Status = Status.FEASIBLE
    nodes: int = 0

    @property
    def height(self) -> int:
        """Bytes of all arenas together."""
        return sum(self.heights.values())

    @property
    def lower_bound(self) -> int:
        """Bytes that any plan needs, all scopes together."""
        return sum(self.lower_bounds.values())

    def fits(self, capacity: int | None) -> bool:
        """True if the arena of each scope is at most ``capacity`` bytes."""
        return capacity is None or all(height <= capacity for height in self.heights.values())
