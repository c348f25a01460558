"""Checks of an ONNX model before it is imported."""
