"""Layouts between regions: tensors that cross in the physical layout in which they are, and stored state."""

from .mark_state import MarkState, stored_state
from .note_rows import NoteRowsInPlace
from .propagate_layouts import PropagateLayouts
from .store_state import CONVERTING, StoreState

__all__ = ["CONVERTING", "MarkState", "NoteRowsInPlace", "PropagateLayouts", "StoreState", "stored_state"]
