"""Checks of what a step is given to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InvalidInputError
from .numbers import int_of

_TABLES = ("model", "slots", "sums", "optimizer")
_COUNTS = ("steps", "calls")


def check_state(state: object) -> Mapping[str, Any]:
    """A state, or weights alone, as tables by name; numbers and shapes in them are looked at later.

    Raises
    ------
    InvalidInputError : another thing, or a part of a state that is none.
    """
    if not isinstance(state, Mapping):
        raise InvalidInputError(
            f"state: a {type(state).__name__}; expected what state_dict() gives, or weights by their names"
        )
    if not isinstance(state.get("model"), Mapping):
        return state
    slots = state.get("slots")
    tables = {f"state: {name}": state[name] for name in _TABLES if name in state}
    if isinstance(slots, Mapping):
        tables |= {f"state: slots of {slot}": row for slot, row in slots.items()}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise InvalidInputError(f"{name}={table!r}; expected a table by names")
    for name in _COUNTS:
        if name in state:
            int_of(f"state: {name}", state[name], 0)
    return state
