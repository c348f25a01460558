"""Shows the use of an arena's bytes, and how good its plan is, as plain data that prints, saves and loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.allocation import Plan

KINDS = ("between", "arenas", "values", "scratchpads", "constants", "inputs", "outputs")


@dataclass(frozen=True)
class MemoryItem:
    """The content of the arena at one offset: a value with its views, or a scratchpad.

    Attributes
    ----------
    kind : ``values`` or ``scratchpads`` of regions; ``arenas`` of regions that several calls share, each a
        block; ``between`` regions and TVM's kernels.
    nbytes : of all its parts together, rounded up to the alignment.
    birth, death : first step that needs it, and one past the last.
    offset : first byte in the arena.
    parts : birth, death, offset from the item's and bytes of each part, where a function's item has several.
    """

    name: str
    kind: str
    nbytes: int
    birth: int
    death: int
    offset: int
    parts: tuple[tuple[int, int, int, int], ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MemoryItem:
        """Inverse of ``dataclasses.asdict``."""
        return cls(**{**data, "parts": tuple(tuple(part) for part in data.get("parts", ()))})


@dataclass(frozen=True)
class MemoryReport:
    """The memory of one region, or of a function that holds regions and kernels.

    Attributes
    ----------
    region : its name, or the function's.
    kinds : bytes by kind, nothing reused.  ``values`` and ``scratchpads`` are what the arena is for;
        ``constants``, ``inputs`` and ``outputs`` stand elsewhere.  ``padding`` is the part of ``values`` in
        which no element stands: tails of blocked layouts and alignment.
    height : bytes of the arena.
    lower_bound : bytes that no plan can do without.
    status : what is known about the height.
    stock : what TVM's own reuse of whole storages would take for the same items.
    no_reuse : what the items take when each has bytes of its own.
    stands_in : the function whose arena holds the region's values, so that ``height`` is what the region
        alone would need; empty for an arena that exists.
    tensors : the lower bound without scratchpads: what tensors alone need.
    """

    region: str
    kinds: dict[str, int]
    height: int
    lower_bound: int
    status: str
    stock: int
    no_reuse: int
    items: tuple[MemoryItem, ...] = ()
    stands_in: str = ""
    tensors: int = -1

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MemoryReport:
        """Inverse of ``dataclasses.asdict``."""
        items = tuple(MemoryItem.from_json(item) for item in data["items"])
        return cls(**{**data, "items": items})

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.kinds[kind]:,}" for kind in KINDS if kind in self.kinds)
        padding = f"; padding {self.kinds['padding']:,} of the values" if "padding" in self.kinds else ""
        tensors = f"tensors alone need {self.tensors:,}; " if self.kinds.get("scratchpads") else ""
        alone = f" alone; its values stand in the arena of {self.stands_in}" if self.stands_in else ""
        return (
            f"memory {self.height:,} bytes ({self.status}; lower bound {self.lower_bound:,}), "
            f"TVM's reuse {self.stock:,}, no reuse {self.no_reuse:,}{alone}\n"
            f"{tensors}bytes by kind: {kinds}{padding}"
        )


def proof_text(plan: Plan) -> str:
    """Describes what is known about a plan's height, and the number of placements if it was searched."""
    from ..core.allocation import Status

    if plan.status is Status.LOWER_BOUND:
        return plan.status.value
    if plan.status is Status.EXHAUSTED:
        return f"{plan.status.value} after {plan.nodes:,} placements"
    gap = 100 * (plan.height - plan.lower_bound) / max(plan.lower_bound, 1)
    searched = f", {plan.nodes:,} placements searched" if plan.nodes else ""
    return f"at most {gap:.1f} % above the optimum{searched}"
