"""Models of float32 as models of float16."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

_FLOAT, _HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in float16, which is changed in place."""
    attributes = [one.t for node in model.graph.node for one in node.attribute if one.HasField("t")]
    for tensor in [*model.graph.initializer, *attributes]:
        if tensor.data_type == _FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    for node in model.graph.node:
        for one in node.attribute if node.op_type == "Cast" else ():
            if one.name == "to" and one.i == _FLOAT:
                one.i = _HALF
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if value.type.tensor_type.elem_type == _FLOAT:
            value.type.tensor_type.elem_type = _HALF
    return model
