"""Physical layouts inside regions: candidates, the choice among them, and the reorders that follow."""

from .infer_layouts import InferLayouts

__all__ = ["InferLayouts"]
