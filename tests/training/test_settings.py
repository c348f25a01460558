"""Accumulation, dropouts, smoothing, frozen weights, and a Relax model with a loss of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from tvm_mxplan import training
from tvm_mxplan.testing.reference import relative_l2

SMALL: dict[str, Any] = {"target": "llvm", "options": {"machine": "default", "cache": "disabled"}}
RANDOM = np.random.default_rng(5)
X, LABELS = RANDOM.standard_normal((6, 5)).astype("float32"), RANDOM.integers(0, 4, 6)


def dense(batch: int, *, drops: bool = False) -> onnx.ModelProto:
    random = np.random.default_rng(0)
    nodes = [helper.make_node("Gemm", ["d" if drops else "x", "w", "b"], ["y"])]
    if drops:
        nodes.insert(0, helper.make_node("Dropout", ["x"], ["d"], name="drop"))
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 4])],
        [
            numpy_helper.from_array(random.standard_normal((5, 4)).astype("float32"), "w"),
            numpy_helper.from_array(random.standard_normal(4).astype("float32"), "b"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.slow
def test_accumulated_gradients_are_those_of_the_batches_together() -> None:
    loss = "softmax_cross_entropy"
    whole = training.compile(dense(6), loss, training.SGD(0.3, momentum=0.5), **SMALL)
    halves = training.compile(dense(3), loss, training.SGD(0.3, momentum=0.5), accumulate=2, **SMALL)
    for _ in range(2):
        first = halves.state_dict()["model"]["w"]
        losses = [halves(X[:3], LABELS[:3])]
        assert (halves.state_dict()["model"]["w"] == first).all()
        losses.append(halves(X[3:], LABELS[3:]))
        assert whole(X, LABELS) == pytest.approx(np.mean(losses), rel=1e-5)
        for name, array in whole.state_dict()["model"].items():
            assert relative_l2(halves.state_dict()["model"][name], array) < 1e-5
    assert (whole.steps, halves.steps) == (2, 2)


@pytest.mark.slow
def test_dropouts_follow_the_seed_and_are_gone_in_inference() -> None:
    def losses(seed: int) -> list[float]:
        step = training.compile(
            dense(6, drops=True), "softmax_cross_entropy", training.SGD(0.0), seed=seed, **SMALL
        )
        plain = X @ step.state_dict()["model"]["w"] + step.state_dict()["model"]["b"]
        np.testing.assert_allclose(step.evaluate(X)[0], plain, rtol=1e-5, atol=1e-5)
        return [step(X, LABELS) for _ in range(3)]

    first = losses(3)
    assert len(set(first)) == 3  # each call drops others
    assert losses(3) == first
    assert losses(4) != first


def test_labels_are_smoothed_and_weights_stay_that_are_not_trained() -> None:
    loss = training.SoftmaxCrossEntropy(label_smoothing=0.2)
    step = training.compile(dense(6), loss, training.SGD(0.3), trainable=["b"], **SMALL)
    before = step.state_dict()["model"]
    logits = X.astype("float64") @ before["w"] + before["b"]
    logarithms = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -(0.8 * logarithms[np.arange(6), LABELS] + 0.2 * logarithms.mean(1)).mean()
    assert step(X, LABELS) == pytest.approx(expected, rel=1e-5)
    after = step.state_dict()["model"]
    assert (after["w"] == before["w"]).all()
    assert (after["b"] != before["b"]).all()


def test_a_relax_model_learns_by_a_loss_of_its_own() -> None:
    x, w = (
        relax.Var(name, relax.TensorType(shape, "float64")) for name, shape in (("x", (6, 5)), ("w", (5, 2)))
    )
    model, loss = relax.BlockBuilder(), relax.BlockBuilder()
    with model.function("main", [x, w]):
        with model.dataflow():
            result = model.emit_output(relax.op.matmul(x, w))
        model.emit_func_output(result)
    y, t = (relax.Var(name, relax.TensorType((6, 2), "float64")) for name in ("y", "t"))
    with loss.function("loss", [y, t]):
        with loss.dataflow():
            result = loss.emit_output(relax.op.sum(relax.op.abs(relax.op.subtract(y, t))))
        loss.emit_func_output(result)
    first = np.random.default_rng(1).standard_normal((5, 2))
    function = loss.get()["loss"]
    assert isinstance(function, tvm.relax.Function)
    step = training.compile(
        model.get(), function, training.SGD(0.01), inputs=["x"], params={"w": first}, **SMALL
    )
    wide, targets = X.astype("float64"), np.zeros((6, 2))
    assert step(wide, t=targets) == pytest.approx(np.abs(wide @ first).sum(), rel=1e-12)
    expected = first - 0.01 * wide.T @ np.sign(wide @ first)
    np.testing.assert_allclose(step.state_dict()["model"]["w"], expected, rtol=1e-12)
