"""The inputs of a reference: a step's operands by role, in float64, and the shape of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimate import Array

_FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class Operands:
    """Operands by role, several in one role in their order, and the logical shape and type of ``dst``.

    Attributes
    ----------
    short : roles whose numbers came in a type shorter than float32.
    """

    by_role: Mapping[str, Sequence[Array]]
    shape: tuple[int, ...]
    dtype: np.dtype[Any] = _FLOAT
    short: frozenset[str] = frozenset()

    def __getitem__(self, role: str) -> Array:
        return self.by_role[role][0]

    def get(self, role: str) -> Array | None:
        return self.by_role[role][0] if role in self.by_role else None

    @property
    def src(self) -> Array:
        return self["src"]

    def channels(self, role: str) -> Array:
        """A vector shaped to broadcast along axis 1 of ``dst``."""
        return self[role].reshape(1, -1, *[1] * (len(self.shape) - 2))


def absolute(array: Array) -> Array:
    """Absolute values in float32: magnitudes need no more, and cost half."""
    return np.abs(array).astype(np.float32)
