"""Indices that operators read and write elements by: how they count, and which are out of bounds."""

from .check_indices import CheckIndices
from .count_from_either_end import CountFromEitherEnd

__all__ = ["CheckIndices", "CountFromEitherEnd"]
