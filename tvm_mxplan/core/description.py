"""A backend's answers when asked about a program: see ``Backend.describe``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Implementation:
    """An implementation as its library calls it, and what the name says.

    Attributes
    ----------
    name : in the library's own spelling, which only the library reads.
    family : kernels of one kind, in the library's words; its costs go by it.
    instruction_set : ``avx512``, ``avx2``, ``sse41`` or another name of ``MachineRates``; '' if none is said.
    is_reference : whether it, or part of it, is the library's slow fallback code.
    """

    name: str
    family: str = ""
    instruction_set: str = ""
    is_reference: bool = False


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
    that compute the same in the same layouts: refusals are registered by it.  The last three fields are
    those of :class:`Implementation`.
    """

    implementation: str
    scratchpad_bytes: int
    weights_bytes: int
    error: str
    relative_error: float = 0.0
    alternatives: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    descriptor: str = ""
    family: str = ""
    instruction_set: str = ""
    is_reference: bool = False

    def running(self, other: Implementation) -> StepInfo:
        """The same step with another implementation."""
        return replace(
            self,
            implementation=other.name,
            family=other.family,
            instruction_set=other.instruction_set,
            is_reference=other.is_reference,
        )


NOTHING_KNOWN = StepInfo("", 0, 0, "")
"""Of a step about which no library was asked."""


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
