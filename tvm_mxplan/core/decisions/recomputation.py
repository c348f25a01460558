"""``Recomputation``: what runs twice for a budget of memory, and what that costs, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Recomputation:
    """Operators that run again in the backward part of a step.

    Attributes
    ----------
    budget : bytes that the arena may take.
    before, after : bytes that it takes without and with them.
    operators : how many of each kind run again.
    us_before, us_after : microseconds of a step without and with them, by the model of costs.
    least_us : microseconds that no choice within the same bytes could do without, by the estimates that the
        choice rests on.
    chosen_us : those of the choice, by the same estimates.
    exact : no choice within the same bytes costs less in which each operator runs again at most once.
    """

    budget: int
    before: int
    after: int
    operators: Mapping[str, int]
    us_before: float
    us_after: float
    least_us: float
    chosen_us: float
    exact: bool

    @property
    def factor(self) -> float:
        """The estimated time of a step over that without a budget."""
        return self.us_after / self.us_before if self.us_before else 1.0

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Recomputation | None:
        """Inverse of ``dataclasses.asdict``."""
        return None if data is None else cls(**data)

    def __str__(self) -> str:
        count = sum(self.operators.values())
        kinds = ", ".join(f"{number} x {kind}" for kind, number in sorted(self.operators.items()))
        proof = f"at least {self.least_us:,.0f} us are needed"
        if self.exact:
            proof = "the least where each runs again once"
        return "\n".join(
            [
                f"memory budget of {self.budget:,} bytes: {count} operators run again ({kinds})",
                f"  arena {self.before:,} to {self.after:,} bytes, estimated time times {self.factor:.2f}",
                f"  {self.chosen_us:,.0f} us by the estimates of the choice; {proof}",
            ]
        )
