"""Sizes as PyTorch knows them, numbers that follow from them, and conditions on them."""

from .conditions import condition_text, guards_of, kept_conditions
from .expressions import ENDLESS, Variables, size_of
from .numbers import number_of

__all__ = ["ENDLESS", "Variables", "condition_text", "guards_of", "kept_conditions", "number_of", "size_of"]
