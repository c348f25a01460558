"""What a backend answers when asked about a program: see ``Backend.describe``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


def is_reference(implementation: str) -> bool:
    """True if an implementation, or one of several joined by ``+``, is the library's slow fallback code."""
    return any(part.split(":")[0] == "ref" for part in implementation.split("+"))


class Refused(NamedTuple):
    """An implementation that the library would have run for a step, and why it does not."""

    implementation: str
    reason: str


@dataclass(frozen=True)
class StepInfo:
    """One step as the library would run it; ``error`` is why it cannot be made, '' if it can.

    ``relative_error`` is what the implementation adds to the rounding of plain float32 sums, relative to
    its result in the L2 norm.  ``alternatives`` are other implementations that the library has for the
    step, by the names that a step may prefer; none where it leaves no choice.  ``refused`` are those that
    were passed over because they are wrong for it.  ``descriptor`` is the step as a text, equal for steps
    that compute the same in the same layouts: refusals are registered by it.
    """

    implementation: str
    scratchpad_bytes: int
    weights_bytes: int
    error: str
    relative_error: float = 0.0
    alternatives: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    descriptor: str = ""

    @property
    def is_reference(self) -> bool:
        """True if one of the step's primitives is the library's slow fallback code."""
        return is_reference(self.implementation)


@dataclass(frozen=True)
class ValueInfo:
    """Physical layout and bytes, padding included, of one value; -1 bytes where no step decides."""

    layout: str
    nbytes: int


@dataclass(frozen=True)
class Description:
    """One entry for each step and each value of the program asked about."""

    steps: tuple[StepInfo, ...]
    values: tuple[ValueInfo, ...]
