"""Initializers of an ONNX model that are trained, by what reads them, and those that stay constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training
from tvm_mxplan.errors import InvalidInputError

SMALL: dict[str, Any] = {"target": "llvm", "options": {"machine": "default", "cache": "disabled"}}
RANDOM = np.random.default_rng(11)
X, TARGETS = RANDOM.standard_normal((2, 3, 6)), RANDOM.standard_normal((2, 5, 1))
MASK = RANDOM.standard_normal((5, 8)) > -0.5
WEIGHTS = {
    "token": RANDOM.standard_normal((1, 1, 8)),
    "query": RANDOM.standard_normal((6, 5)),
    "key": RANDOM.standard_normal((6, 3)),
    "places": RANDOM.standard_normal((9, 8)),
    "floor": RANDOM.standard_normal(8) - 1,
    "fill": RANDOM.standard_normal((5, 8)),
    "mix": RANDOM.standard_normal((8, 8)),
    "base": RANDOM.uniform(0.5, 1.5, 8),
    "head": RANDOM.standard_normal((8, 1)),
    "bias": RANDOM.standard_normal(1),
}
CONSTANTS = {"scale": np.array([0.7]), "two": np.array(2.0)}


def model() -> onnx.ModelProto:
    """Weights behind nodes that move them, operands of arithmetic, a bias of one number, and constants."""
    node = helper.make_node
    fill = helper.make_tensor("none", TensorProto.FLOAT, [1], [0.0])
    nodes = [
        node("Expand", ["token", "token.shape"], ["tokens"]),
        node("Concat", ["query", "key"], ["both"], axis=1),
        node("MatMul", ["x", "both"], ["hidden"]),
        node("ConstantOfShape", ["zeros.shape"], ["zeros"], value=fill),
        node("Concat", ["tokens", "hidden", "zeros"], ["rows"], axis=1),
        node("Slice", ["places", "begin", "end"], ["five"]),
        node("Add", ["rows", "five"], ["placed"]),
        node("Max", ["placed", "floor"], ["above"]),
        node("Where", ["mask", "above", "fill"], ["filled"]),
        node("Mul", ["filled", "scale"], ["scaled"]),
        node("Einsum", ["scaled", "mix"], ["mixed"], equation="bij,jk->bik"),
        node("Pow", ["base", "two"], ["squares"]),
        node("Mul", ["mixed", "squares"], ["shared"]),
        node("MatMul", ["shared", "head"], ["one"]),
        node("Add", ["bias", "one"], ["y"]),
    ]
    arrays = {name: array.astype("float32") for name, array in {**WEIGHTS, **CONSTANTS}.items()}
    arrays |= {"token.shape": np.array([2, 1, 8]), "zeros.shape": np.array([2, 1, 8]), "mask": MASK}
    arrays |= {"begin": np.array([2]), "end": np.array([7])}
    graph = helper.make_graph(
        nodes,
        "weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5, 1])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def loss(weights: dict[str, np.ndarray]) -> float:
    hidden = X @ np.concatenate([weights["query"], weights["key"]], 1)
    rows = np.concatenate([np.tile(weights["token"], (2, 1, 1)), hidden, np.zeros((2, 1, 8))], 1)
    above = np.maximum(rows + weights["places"][2:7], weights["floor"])
    scaled = np.where(MASK, above, weights["fill"]) * weights["scale"]
    result = (scaled @ weights["mix"] * weights["base"] ** 2) @ weights["head"] + weights["bias"]
    return float(((result - TARGETS) ** 2).mean())


@pytest.mark.parametrize("named", [None, ["scale", "token"]])
def test_gradients_of_weights_are_those_of_differences(named: list[str] | None) -> None:
    step = training.compile(
        model(), "mean_squared_error", "sgd", keep_gradients=True, trainable=named, **SMALL
    )
    assert sorted(step.trained) == sorted(named or WEIGHTS)
    assert step.constants == (["two", "zeros"] if named else ["scale", "two", "zeros"])
    first = {**WEIGHTS, **CONSTANTS}
    assert step(X.astype("float32"), TARGETS.astype("float32")) == pytest.approx(loss(first), rel=1e-5)
    assert set(step.gradients) == set(step.trained)
    for name, grad in step.gradients.items():
        direction = 1e-6 * RANDOM.standard_normal(grad.shape)
        above, below = ({**first, name: first[name] + sign * direction} for sign in (1, -1))
        expected = (loss(above) - loss(below)) / 2
        # Sums of float32 of some tens of terms, beside differences in float64.
        scale = np.sqrt((grad**2).sum() * (direction**2).sum())
        assert abs(float((grad * direction).sum()) - expected) < 1e-4 * scale, name


def test_what_is_no_weight_by_any_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the model has no weight 'mask'"):
        training.compile(model(), "mean_squared_error", "sgd", trainable=["mask"], **SMALL)
    with pytest.raises(InvalidInputError, match="params: an ONNX model holds its weights"):
        training.compile(model(), "mean_squared_error", "sgd", params={"bias": np.zeros(1)}, **SMALL)
