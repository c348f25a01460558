"""A small model, and one of several regions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tvm_mxplan.testing import zoo


@pytest.fixture(scope="module")
def tiny() -> onnx.ModelProto:
    return zoo.load("tiny")


@pytest.fixture(scope="module")
def two_regions() -> onnx.ModelProto:
    """Convolutions that Winograd's algorithms can compute, with an operator of TVM's own between them."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, 1 / 24, (64, 64, 3, 3)).astype(np.float32) for _ in range(2)]
    shape = (1, 64, 28, 28)
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
        helper.make_node("Atan", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["y"], pads=[1] * 4),
    ]
    graph = helper.make_graph(
        nodes,
        "two_regions",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, shape)],
        [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
