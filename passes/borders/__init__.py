"""Layouts between regions: tensors that cross in the physical layout in which they are."""

from .propagate_layouts import PropagateLayouts
from .store_state import CONVERTING, STATE, StoreState

__all__ = ["CONVERTING", "STATE", "PropagateLayouts", "StoreState"]
