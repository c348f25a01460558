"""The layouts that the host library's kernels are asked for."""

from __future__ import annotations

from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.program import program as ir

from .layouts import BLOCK

RULES = LayoutRules(
    BLOCK,
    images=(ir.Resize, ir.GridSample, ir.GatherPlaces),
    follows=(ir.Eltwise, ir.Binary, ir.Slice, ir.Select, ir.Compare, ir.Cast, ir.Reduction),
    casts=True,
)
