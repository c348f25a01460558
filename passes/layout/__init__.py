"""Physical layouts: candidates, the choice among them, and the reorders that follow; across regions too."""

from .infer_layouts import InferLayouts
from .propagate_layouts import PropagateLayouts

__all__ = ["InferLayouts", "PropagateLayouts"]
