"""Networks as onnxruntime's static quantiser writes them: in the form of QuantizeLinear, DequantizeLinear."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_SAMPLES, _SEED = 2, 3
ACTIVATIONS = ("u8", "s8")


def quantized(
    model: onnx.ModelProto, activations: str = "u8", per_channel: bool = False, transformer: bool = False
) -> onnx.ModelProto:
    """The model with weights of 8 bits, scales from random inputs, batch norms folded before.

    Parameters
    ----------
    activations : u8 or s8; weights are signed.
    per_channel : a scale for each output of a product.
    transformer : only matrix products are quantised.
    """
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.getLogger().setLevel(logging.ERROR)  # it advises to do what is done here
    with tempfile.TemporaryDirectory(prefix="quantized_") as folder:
        plain, ready, made = (str(Path(folder) / name) for name in ("plain.onnx", "ready.onnx", "made.onnx"))
        onnx.save(model, plain)
        quant_pre_process(plain, ready, skip_symbolic_shape=True, skip_optimization=transformer)
        quantize_static(
            ready,
            made,
            _reader(model),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8 if activations == "u8" else QuantType.QInt8,
            weight_type=QuantType.QInt8,
            per_channel=per_channel,
            op_types_to_quantize=["MatMul", "Gemm"] if transformer else None,
        )
        return onnx.load(made)


def result_step(model: onnx.ModelProto) -> float | None:
    """The scale of the quantiser that the first result comes from; None where it comes from none."""
    import onnx.numpy_helper

    (maker,) = [node for node in model.graph.node if model.graph.output[0].name in node.output]
    scales = {one.name: one for one in model.graph.initializer}
    if maker.op_type != "DequantizeLinear" or maker.input[1] not in scales:
        return None
    return float(onnx.numpy_helper.to_array(scales[maker.input[1]]).reshape(-1)[0])


def _reader(model: onnx.ModelProto) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            random = np.random.default_rng(_SEED)
            shapes = {
                one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim]
                for one in model.graph.input
            }
            self._samples = iter(
                [
                    {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
                    for _ in range(_SAMPLES)
                ]
            )

        def get_next(self) -> Any:
            return next(self._samples, None)

    return Reader()
