"""Makes quantised models of ONNX files by onnxruntime's tools, and tells what each layer costs in accuracy.

made = quantize("model.onnx", "model_int8.onnx", read_inputs("calibration.npz"))
print(layer_report(made, samples))
"""

from .calibration import Samples, samples_of
from .layers import LayerError, layer_errors
from .making import METHODS, Made, Settings, quantize
from .report import layer_report

__all__ = [
    "METHODS",
    "LayerError",
    "Made",
    "Samples",
    "Settings",
    "layer_errors",
    "layer_report",
    "quantize",
    "samples_of",
]
