"""Layouts between regions: tensors that cross in the physical layout in which they are."""

from .propagate_layouts import PropagateLayouts
from .state_weights import STATE
from .store_state import CONVERTING, StoreState

__all__ = ["CONVERTING", "STATE", "PropagateLayouts", "StoreState"]
