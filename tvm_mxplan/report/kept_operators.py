"""The operators that TVM's own code keeps, as a report tells them."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.decisions.origin import Origins


@dataclass(frozen=True)
class Fallback:
    """Operators of one kind that TVM's own code keeps, and why."""

    operator: str
    count: int
    reason: str


@dataclass(frozen=True)
class KeptOperator:
    """One operator that TVM's own code keeps.

    Attributes
    ----------
    operator, kind : its name and what it is: ``floor_0``, ``relax.floor``.
    origins : what in the user's model it comes from.
    estimated_us : as ``estimated_times`` has it, in the same measure as a region's; None where shapes are
        not known.
    """

    operator: str
    kind: str
    reason: str
    origins: Origins = ()
    estimated_us: float | None = None
