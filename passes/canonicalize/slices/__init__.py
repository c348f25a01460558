"""Slices: what reads and writes them by other means, and what they make where they meet again."""

from .phases import join_phases
from .regular_places import OPERATORS as BY_INDICES
from .regular_places import of_regular_places
from .sections import join_sections, section_of_split

__all__ = ["BY_INDICES", "join_phases", "join_sections", "of_regular_places", "section_of_split"]
