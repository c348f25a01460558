"""A caller's statements about a model's inputs: shapes with numbers and names, and bounds of the names."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.program.dim_text import dim_from_text
from ..core.program.dims import LARGEST_EXTENT, Expr
from ..errors import InvalidInputError

Shape = Sequence[int | str]
CAPACITY = 1024
"""Rows of a cache unless a caller states others."""


@dataclass(frozen=True)
class StatedInputs:
    """Shapes of inputs by name, in place of the model's, and bounds of dimensions by name.

    Attributes
    ----------
    shapes : a dimension is a number, a name, or arithmetic over names; dimensions of one name are equal in
        every call.
    bounds : the smallest and the largest number that a named dimension may be in a call.
    states : names of results by the names of the inputs that they are in the next call.
    capacity : rows that there is room for in states that grow.
    """

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    capacity: int = CAPACITY

    @classmethod
    def of(
        cls,
        shapes: Mapping[str, Shape] | None,
        bounds: Mapping[str, Sequence[int]] | None,
        states: Mapping[str, str] | None = None,
        capacity: int = CAPACITY,
    ) -> StatedInputs:
        """Makes the statements from a caller's arguments, checked as far as possible without the model.

        Raises
        ------
        InvalidInputError : a dimension that is neither a number nor a name, bounds that are no two numbers,
            arguments that name nothing.
        """
        for what, stated in (("shapes", shapes), ("bounds", bounds), ("states", states)):
            if stated is not None and not isinstance(stated, Mapping):
                raise InvalidInputError(f"{what}: expected a dict by name, got {type(stated).__name__}")
        checked = {name: [_dimension(name, dim) for dim in shape] for name, shape in (shapes or {}).items()}
        if isinstance(capacity, bool) or not isinstance(capacity, numbers.Integral) or capacity < 1:
            raise InvalidInputError(f"capacity: expected a number of rows, at least 1, got {capacity!r}")
        limits = {name: _bounds(name, pair) for name, pair in (bounds or {}).items()}
        return cls(checked, limits, dict(states or {}), int(capacity))


def plain_shape(shape: Shape) -> list[int | str]:
    """The shape in types that are written to files."""
    return [dim if isinstance(dim, str) else int(dim) for dim in shape]


def _dimension(name: str, dim: object) -> int | str:
    if isinstance(dim, str):
        if re.fullmatch(r"[A-Za-z_]\w*", dim) or isinstance(dim_from_text(dim), Expr):
            return dim
        raise InvalidInputError(
            f"input {name!r}: dimension {dim!r}; expected a number, a name of letters and digits, or "
            "arithmetic over names such as past + seq"
        )
    if isinstance(dim, numbers.Integral) and not isinstance(dim, bool):
        return int(dim)
    raise InvalidInputError(f"input {name!r}: dimension {dim!r}; expected a number or a name")


def _bounds(name: str, pair: object) -> tuple[int, int]:
    if isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2:
        low, high = pair
        if all(isinstance(end, numbers.Integral) for end in pair) and 0 <= low <= high <= LARGEST_EXTENT:
            return int(low), int(high)
    raise InvalidInputError(
        f"bounds of {name!r}: {pair!r}; expected the smallest and the largest number, such as (1, 32)"
    )
