"""Where the bytes of a region go, and how good its plan is, as plain data that prints, saves and loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = ("values", "scratchpads", "constants", "inputs", "outputs", "padding")


@dataclass(frozen=True)
class MemoryItem:
    """What stands in the arena at one offset: a value with its views, or a scratchpad.

    Attributes
    ----------
    kind : ``values`` or ``scratchpads``.
    nbytes : of all its parts together, rounded up to the alignment.
    birth, death : first step that needs it, and one past the last.
    offset : first byte in the arena.
    """

    name: str
    kind: str
    nbytes: int
    birth: int
    death: int
    offset: int


@dataclass(frozen=True)
class MemoryReport:
    """The memory of one region.

    Attributes
    ----------
    region : its name.
    kinds : bytes by kind, nothing reused.  ``values`` and ``scratchpads`` are what the arena is for;
        ``constants``, ``inputs`` and ``outputs`` stand elsewhere.  ``padding`` is the part of ``values`` in
        which no element stands: tails of blocked layouts and alignment.
    height : bytes of the arena.
    lower_bound : bytes that no plan can do without.
    status : what is known about the height.
    stock : what TVM's own reuse of whole storages would take for the same items.
    no_reuse : what the items take when each has bytes of its own.
    """

    region: str
    kinds: dict[str, int]
    height: int
    lower_bound: int
    status: str
    stock: int
    no_reuse: int
    items: tuple[MemoryItem, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MemoryReport:
        """Inverse of ``dataclasses.asdict``."""
        items = tuple(MemoryItem(**item) for item in data["items"])
        return cls(**{**data, "items": items})

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.kinds[kind]:,}" for kind in KINDS if kind != "padding")
        return (
            f"memory {self.height:,} bytes ({self.status}; lower bound {self.lower_bound:,}), "
            f"TVM's reuse {self.stock:,}, no reuse {self.no_reuse:,}\n"
            f"bytes by kind: {kinds}; padding {self.kinds['padding']:,} of the values"
        )


def status_text(height: int, lower_bound: int) -> str:
    """What a height says beside its bound."""
    if height == lower_bound:
        return "optimal: equals the lower bound"
    return f"at most {100 * (height - lower_bound) / max(lower_bound, 1):.1f} % above the optimum"
