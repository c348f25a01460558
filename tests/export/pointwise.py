"""A convolution whose weights every instruction set packs, larger than a slice of what is read at once."""

from __future__ import annotations

import numpy as np
import onnx

SHAPE = (1, 2503, 3, 5)


def model() -> onnx.ModelProto:
    """Rows and columns that are no multiples of a block, in weights larger than a slice."""
    weights = np.random.default_rng(5).standard_normal((1003, 2503, 1, 1)).astype("float32")
    bias = np.random.default_rng(6).standard_normal(1003).astype("float32")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["x", "w", "b"], ["y"])],
        "pointwise",
        [value("x", onnx.TensorProto.FLOAT, SHAPE)],
        [value("y", onnx.TensorProto.FLOAT, (1, 1003, *SHAPE[2:]))],
        [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b")],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
