"""Options of a compilation: one immutable value, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .errors import InvalidInputError
from .passes.layout.candidates import POLICIES, Policy


@dataclass(frozen=True)
class Options:
    """What a user can choose.

    Attributes
    ----------
    layouts : ``cost`` (default) chooses over the whole region; ``channels_last``, ``blocked`` and
        ``plain`` use one layout wherever it is possible; ``naive`` also reorders around every operator and
        serves as a yardstick.  Part of the fingerprint.
    tune : ``model`` (default) estimates what operators cost in each layout; ``measure`` times them on this
        machine.  Part of the fingerprint.
    tune_seconds : what measuring may take, for each region.
    memory : ``reuse`` (default) lets values that are not alive together share bytes; ``no_reuse`` gives each
        its own, for comparison and debugging.  Symbolic shapes are planned at run time, always with reuse.
        Part of the fingerprint.
    order : ``keep`` (default) runs operators as the model states them; ``memory`` lets them run in an order
        that needs a smaller arena, where there is one, which may take longer.  Part of the fingerprint.
    """

    layouts: Policy = "cost"
    tune: str = "model"
    tune_seconds: float = 5.0
    memory: str = "reuse"
    order: str = "keep"

    def __post_init__(self) -> None:
        _one_of("layouts", self.layouts, POLICIES)
        _one_of("tune", self.tune, ("model", "measure"))
        _one_of("memory", self.memory, ("reuse", "no_reuse"))
        _one_of("order", self.order, ("keep", "memory"))
        number = isinstance(self.tune_seconds, int | float) and not isinstance(self.tune_seconds, bool)
        if not number or not self.tune_seconds > 0:
            raise InvalidInputError(f"option tune_seconds={self.tune_seconds!r}; expected a number above 0")

    @classmethod
    def of(cls, options: Options | dict[str, Any] | None) -> Options:
        """Options from a mapping; InvalidInputError names an unknown field and the known ones."""
        if options is None:
            return cls()
        if isinstance(options, Options):
            return options
        if not isinstance(options, Mapping):
            kind = type(options).__name__
            raise InvalidInputError(f"options: expected an Options or a dict, got {kind}")
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise InvalidInputError(f"unknown option {unknown[0]!r}; the options are {', '.join(known)}")
        return cls(**options)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"option {name}={value!r}; expected one of {', '.join(allowed)}")
