"""``StoredState``: how a parameter that outlives a call is stored, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..layout.layout import parse_layout
from ..layout.layout_arrays import pack, unpack


@dataclass(frozen=True)
class StoredState:
    """A parameter in a layout of its own.

    Attributes
    ----------
    parameter : its number among those of the function.
    shape : that the layout is of; as many elements as the parameter has, in the same order.
    """

    parameter: int
    shape: tuple[int, ...]
    layout: str

    def packed(self, plain: np.ndarray) -> np.ndarray:
        """The parameter as the function takes it."""
        return pack(plain.reshape(self.shape), parse_layout(self.layout))

    def unpacked(self, stored: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The inverse, in the parameter's own shape."""
        return unpack(stored, parse_layout(self.layout), self.shape).reshape(shape)

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the tensor that the function takes."""
        return tuple(int(extent) for extent in parse_layout(self.layout).physical_shape(self.shape))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StoredState:
        """Inverse of ``dataclasses.asdict``, also behind JSON."""
        return cls(data["parameter"], tuple(data["shape"]), data["layout"])
