"""Layouts between regions: tensors that cross in the physical layout in which they are."""

from .propagate_layouts import PropagateLayouts

__all__ = ["PropagateLayouts"]
