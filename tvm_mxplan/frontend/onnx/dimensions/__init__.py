"""Dimensions with names while an ONNX model is imported: arithmetic, agreement and statements."""
