"""Models in float64, worked out by ONNX's reference operators: slow, and with every operator of ONNX."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def exact_outputs(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model of float32 for inputs of float32, worked out in float64.

    Raises
    ------
    ValueError : an operator narrows real numbers, so that outputs are not exact.
    """
    given = {
        name: array.astype("float64") if array.dtype == np.float32 else array
        for name, array in inputs.items()
    }
    evaluator = ReferenceEvaluator(widened(model), new_ops=[GatherElements])
    found = [np.asarray(one) for one in evaluator.run(None, given)]
    narrow = [str(one.dtype) for one in found if one.dtype in (np.float32, np.float16)]
    if narrow:
        raise ValueError(f"expected outputs of float64, got {', '.join(narrow)}: an operator narrows them")
    return found


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float64 in the place of float32, but for what is no number of a result: sizes."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    sizes = {name for node in wide.graph.node if node.op_type == "Resize" for name in node.input[1:]}
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in wide.graph.initializer:
        if tensor.name not in sizes:
            _widen(tensor)
    for opset in wide.opset_import:  # to the first whose conversions the reference knows; else they are equal
        opset.version = 19 if opset.version == 18 else opset.version
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR and not sizes.intersection(node.output):
                _widen(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    return wide


class GatherElements(OpRun):
    """ONNX's own (1.23) fails on indices of another shape than the data's."""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        places = list(np.indices(indices.shape, sparse=True))
        places[axis] = indices
        return (data[tuple(places)],)


def _widen(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        array = numpy_helper.to_array(tensor).astype("float64")
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
