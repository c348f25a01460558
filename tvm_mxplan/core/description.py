"""What a backend answers when asked about a program: see ``Backend.describe``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepInfo:
    """One step as the library would run it; ``error`` is why it cannot be made, '' if it can."""

    implementation: str
    scratchpad_bytes: int
    weights_bytes: int
    error: str

    @property
    def is_reference(self) -> bool:
        """True for the library's slow fallback code."""
        return self.implementation.startswith("ref")


@dataclass(frozen=True)
class ValueInfo:
    """Physical layout and bytes, padding included, of one value."""

    layout: str
    nbytes: int


@dataclass(frozen=True)
class Description:
    """One entry for each step and each value of the program asked about."""

    steps: tuple[StepInfo, ...]
    values: tuple[ValueInfo, ...]
