"""The loss of a model that ends in a softmax is that of what stands before it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training

OPTIONS = {"machine": "default", "cache": "disabled"}


@pytest.mark.parametrize("opset, trailing", [(9, ()), (17, (1, 1))])
def test_a_last_softmax_is_left_out(opset: int, trailing: tuple[int, ...]) -> None:
    random = np.random.default_rng(opset)
    weights = 3 * random.standard_normal((7, 5, *trailing)).astype("float32")
    x = random.standard_normal((4, 5, *trailing)).astype("float32")
    labels = random.integers(0, 7, 4)
    if trailing:
        first = helper.make_node("Conv", ["x", "w"], ["a"])
    else:
        first = helper.make_node("Gemm", ["x", "w", "low"], ["a"], transB=1, beta=0.0)
    low, high = np.float32(-0.7), np.float32(5.3)
    nodes = [first, helper.make_node("Clip", ["a", "low", "high"], ["b"])]
    if opset < 11:
        nodes[1] = helper.make_node("Clip", ["a"], ["b"], min=float(low), max=float(high))
    nodes.append(helper.make_node("Softmax", ["b"], ["y"], axis=1))
    bounds = [numpy_helper.from_array(low, "low"), numpy_helper.from_array(high, "high")]
    graph = helper.make_graph(
        nodes,
        "classes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 7, *trailing))],
        [numpy_helper.from_array(weights, "w"), *bounds],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    step = training.compile(model, "softmax_cross_entropy", "sgd", target="llvm", options=OPTIONS)
    wide = np.clip(x.reshape(4, 5).astype("float64") @ weights.reshape(7, 5).T, low, high)
    logarithms = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    expected = -logarithms[np.arange(4), labels].mean()
    assert step(x, labels) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(step.outputs[0].reshape(4, 7), np.exp(logarithms), rtol=1e-4, atol=1e-6)
