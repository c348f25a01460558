"""The loss of a model that ends in a softmax is that of what stands before it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training
from tvm_mxplan.errors import InvalidInputError

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


def of_two_outputs() -> onnx.ModelProto:
    """A dense layer's classes, and their sum beside them."""
    random = np.random.default_rng(2)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["classes"]),
        helper.make_node("ReduceSum", ["classes"], ["total"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 5])],
        [
            helper.make_tensor_value_info("total", TensorProto.FLOAT, []),
            helper.make_tensor_value_info("classes", TensorProto.FLOAT, [4, 7]),
        ],
        [numpy_helper.from_array(random.standard_normal((5, 7)).astype("float32"), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_the_loss_of_one_output_of_two() -> None:
    random = np.random.default_rng(3)
    x, labels = random.standard_normal((4, 5)).astype("float32"), random.integers(0, 7, 4)
    loss, options = "softmax_cross_entropy", {"target": "llvm", "options": OPTIONS}
    with pytest.raises(InvalidInputError, match="name one by the setting output="):
        training.compile(of_two_outputs(), loss, "sgd", **options)
    with pytest.raises(InvalidInputError, match="the model has no 'scores'; it has total, classes"):
        training.compile(of_two_outputs(), loss, "sgd", output="scores", **options)
    step = training.compile(of_two_outputs(), loss, "sgd", output="classes", **options)
    wide = x.astype("float64") @ step.state_dict()["model"]["w"].astype("float64")
    logarithms = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    assert step(x, labels) == pytest.approx(-logarithms[np.arange(4), labels].mean(), rel=1e-5)
    assert [output.shape for output in step.outputs] == [(), (4, 7)]
    assert step.outputs[0] == pytest.approx(wide.sum(), rel=1e-4)
