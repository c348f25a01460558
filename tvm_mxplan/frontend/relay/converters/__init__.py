"""Converters from each of Relay's operators to Relax."""

from __future__ import annotations

from . import elementwise, images, layers, matrices, pools, reductions, shapes  # each fills the table
from .table import TABLE, Converter

__all__ = ["advice", "elementwise", "images", "layers", "matrices", "of", "pools", "reductions", "shapes"]


def of(operator: str) -> Converter | None:
    """The converter of an operator; None where there is none."""
    return TABLE.get(operator)


def advice(operator: str) -> str:
    """The way out for an operator that has no converter."""
    if operator.startswith("qnn."):
        return "save the model before it is quantised, or convert the original to ONNX"
    if operator.startswith("dyn."):
        return "fix the shapes of the inputs and run relay.transform.DynamicToStatic before saving"
    if operator.startswith(("nn.contrib_", "layout_transform", "memory.", "vm.")):
        return "save the module before relay.build's passes change it"
    return "convert the original model to ONNX, or compute that part outside"
