"""Names of layouts as users give them, with the errors that they get."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.layout.layout import Layout
from ..core.layout.layout_names import layout_named
from ..errors import InvalidInputError


def layout_of(name: str, rank: int) -> Layout:
    """The layout of a tensor of logical ``rank``; InvalidInputError if it is unknown or of another rank."""
    try:
        layout = layout_named(name)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
    if len(layout.order) != rank:
        raise InvalidInputError(f"layout {name} is of rank {len(layout.order)}, the tensor of rank {rank}")
    return layout


def fitting_layout(name: str, shape: Sequence[int], physical: Sequence[int]) -> Layout:
    """The layout, having seen that a tensor of logical ``shape`` takes the shape ``physical`` in it."""
    layout = layout_of(name, len(shape))
    expected = layout.physical_shape(shape)
    if tuple(physical) != expected:
        raise InvalidInputError(
            f"to_plain: {tuple(shape)} in {name} is {expected} in memory, not {tuple(physical)}"
        )
    return layout
