"""Sums in float64, operator by operator against onnxruntime; whole networks in test_models.py."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from tvm_mxplan.testing import zoo  # noqa: E402
from tvm_mxplan.testing.float64 import float64_outputs  # noqa: E402
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2  # noqa: E402

OPERATORS = {
    "conv": ("Conv", {"pads": [1, 2, 0, 1], "strides": [2, 1], "dilations": [1, 2]}, (7, 6, 3, 3), (7,)),
    "grouped": ("Conv", {"group": 3, "pads": [1, 1, 1, 1]}, (9, 2, 3, 2), ()),
    "depthwise": ("Conv", {"group": 6, "strides": [2, 2]}, (6, 1, 3, 3), (6,)),
    "max_pool": ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [0, 0, 1, 1]}),
    "max_pool_ceil": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "average_pool": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 0, 2, 1], "strides": [2, 1]}),
    "average_pool_ceil": ("AveragePool", {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    "average_with_pads": (
        "AveragePool",
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "lrn": ("LRN", {"size": 5, "alpha": 0.3, "beta": 0.75, "bias": 2.0}),
    "lrn_of_three": ("LRN", {"size": 3, "alpha": 0.3, "beta": 0.5, "bias": 1.0}),
    "softmax": ("Softmax", {}),
    "softmax_of_an_axis": ("Softmax", {"axis": 2}),
}


@pytest.mark.parametrize("opset", [9, 13, 19])
@pytest.mark.parametrize("case", OPERATORS.values(), ids=OPERATORS)
def test_operators_do_what_onnxruntime_does(case, opset: int) -> None:
    kind, attributes, *parameters = case
    if attributes.get("ceil_mode") and opset < 10:
        pytest.skip("ceil mode came with opset 10")
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 6, 11, 13), dtype=np.float32)
    weights = {
        f"p{number}": generator.standard_normal(shape, dtype=np.float32)
        for number, shape in enumerate(parameters)
        if shape
    }
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", *weights], ["y"], **attributes)],
        kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])

    (actual,) = float64_outputs(model, {"x": x})
    assert actual.dtype == np.float64
    assert relative_l2(actual, onnxruntime_outputs(model, {"x": x})[0]) < 1e-6


def test_an_operator_without_a_form_is_named() -> None:
    model = zoo.load("tiny")
    model.graph.node[0].op_type = "Einsum"
    with pytest.raises(NotImplementedError, match="Einsum"):
        float64_outputs(model, zoo.random_inputs(model))
