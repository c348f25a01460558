"""Whole steps of recurrent networks: oneDNN in float32 against TVM alone in float64, and refusals."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tvm_mxplan import training
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.testing.reference import relative_l2

OPTIONS = {"machine": "default", "cache": "disabled"}
STEPS, SAMPLES, FEATURES, UNITS, CLASSES = 6, 5, 7, 19, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def model(kind: str, dtype: str, **attributes: object) -> onnx.ModelProto:
    """Two layers, the first in both directions, and scores by the last states and the mean of all steps."""
    random = np.random.default_rng(0)
    rows = GATES[kind] * UNITS

    def drawn(*shape: int) -> np.ndarray:
        return random.uniform(-0.4, 0.4, shape).astype(dtype)

    weights = {
        "w1": drawn(2, rows, FEATURES), "r1": drawn(2, rows, UNITS), "b1": drawn(2, 2 * rows),
        "w2": drawn(1, rows, 2 * UNITS), "r2": drawn(1, rows, UNITS), "b2": drawn(1, 2 * rows),
        "head": drawn(UNITS, CLASSES),
    }  # fmt: skip
    last = ["c"] if kind == "LSTM" else []
    nodes = [
        helper.make_node(
            kind, ["x", "w1", "r1", "b1"], ["y1"], direction="bidirectional", hidden_size=UNITS, **attributes
        ),
        helper.make_node("Transpose", ["y1"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "wide"], ["x2"]),
        helper.make_node(kind, ["x2", "w2", "r2", "b2"], ["y2", "h", *last], hidden_size=UNITS, **attributes),
        helper.make_node("ReduceMean", ["y2"], ["mean"], axes=[0], keepdims=0),
        helper.make_node("Sum", ["mean", "h", *last], ["sum"]),
        helper.make_node("ReduceMean", ["sum"], ["row"], axes=[0], keepdims=0),
        helper.make_node("MatMul", ["row", "head"], ["scores"]),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element, [STEPS, SAMPLES, FEATURES])],
        [helper.make_tensor_value_info("scores", element, [SAMPLES, CLASSES])],
        [
            *(numpy_helper.from_array(array, name) for name, array in weights.items()),
            numpy_helper.from_array(np.array([STEPS, SAMPLES, 2 * UNITS]), "wide"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def batch(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal((STEPS, SAMPLES, FEATURES)), random.integers(0, CLASSES, SAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "attributes"), [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})]
)
def test_ten_steps_agree_with_float64(kind: str, attributes: dict[str, int]) -> None:
    single, double = (
        training.compile(
            model(kind, dtype, **attributes),
            "softmax_cross_entropy",
            training.SGD(0.1, momentum=0.9),
            options={**OPTIONS, "opcheck": dtype == "float32"},
            keep_gradients=True,
        )
        for dtype in ("float32", "float64")
    )
    ran = [step.kind for region in single.report.regions for step in region.steps]
    assert ran.count("recurrent_training") == 2
    assert ran.count("recurrent_backward") == 2
    assert not any(region.steps for region in double.report.regions)
    assert set(single.state_dict()["model"]) == {"w1", "r1", "b1", "w2", "r2", "b2", "head"}
    before = single.state_dict()["model"]
    for number in range(10):
        x, labels = batch(number)
        found, expected = single(x.astype("float32"), labels), double(x, labels)
        assert found == pytest.approx(expected, rel=1e-5)
        if number == 0:
            for name, grad in double.gradients.items():
                assert relative_l2(single.gradients[name], grad) < 1e-5, name
    found, expected = single.state_dict()["model"], double.state_dict()["model"]
    for name, array in expected.items():
        assert relative_l2(before[name], array) > 1e-3, name
        assert relative_l2(found[name], array) < 1e-5, name


@pytest.mark.parametrize(
    ("kind", "attributes", "reason"),
    [
        ("RNN", {}, "mxplan.rnn .*has no gradient here, and weights before it are trained: .* plain cells"),
        ("LSTM", {"clip": 1.0}, "mxplan.lstm .*has no gradient here.*: gates that are clipped"),
    ],
)
def test_a_layer_without_gradients_says_why(kind: str, attributes: dict[str, float], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        training.compile(
            model(kind, "float32", **attributes), "softmax_cross_entropy", "sgd", options=OPTIONS
        )
