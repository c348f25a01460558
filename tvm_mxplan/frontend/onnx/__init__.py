"""ONNX models as Relax modules."""

from .model import import_model, input_names, output_names, read_model

__all__ = ["import_model", "input_names", "output_names", "read_model"]
