"""Slices: what reads and writes them by other means, what they make where they meet again or are pooled."""

from .phases import join_phases
from .pool_padding import POOLS, with_padding
from .regular_places import OPERATORS as BY_INDICES
from .regular_places import of_regular_places
from .sections import join_sections, section_of_split

__all__ = [
    "BY_INDICES",
    "POOLS",
    "join_phases",
    "join_sections",
    "of_regular_places",
    "section_of_split",
    "with_padding",
]
