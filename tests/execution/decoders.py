"""Decoders with keys and values of earlier tokens, in ONNX, and onnxruntime as it feeds them back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HEADS, DEPTH = 2, 4
WIDTH = HEADS * DEPTH


def decoder(
    layers: int = 1,
    past: int | str = "past",
    seq: int | str = "seq",
    mask: bool = False,
    through: str = "",
    groups: int = HEADS,
) -> onnx.ModelProto:
    """Layers of attention on [1, seq, WIDTH].

    Parameters
    ----------
    through : an operator that presents go through before they are results.
    groups : heads of keys and values.
    """
    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def node(operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(name: str, array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(array, name))
        return name

    def tensor(name: str, shape: list[int | str]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    after = past + seq if isinstance(past, int) and isinstance(seq, int) else f"{past} + {seq}"
    inputs = [tensor("x", [1, seq, WIDTH])] + ([tensor("mask", [1, 1, 1, after])] if mask else [])
    outputs = []
    x = "x"
    for layer in range(layers):
        parts = {}
        for part in ("query", "key", "value"):
            heads = HEADS if part == "query" else groups
            numbers = (random.standard_normal((WIDTH, heads * DEPTH)) / WIDTH**0.5).astype("float32")
            rows = node("MatMul", [x, constant(f"{part}_weights{layer}", numbers)], f"{part}_rows{layer}")
            shape = constant(f"{part}_shape{layer}", np.array([1, -1, heads, DEPTH]))
            apart = node("Reshape", [rows, shape], f"{part}_apart{layer}")
            parts[part] = node("Transpose", [apart], f"{part}{layer}", perm=[0, 2, 1, 3])
        whole = {}
        for part in ("key", "value"):
            inputs.append(tensor(f"past_{part}{layer}", [1, groups, past, DEPTH]))
            outputs.append(tensor(f"present_{part}{layer}", [1, groups, after, DEPTH]))
            name = f"present_{part}{layer}"
            joined = f"joined_{part}{layer}" if through else name
            whole[part] = node("Concat", [f"past_{part}{layer}", parts[part]], joined, axis=2)
            if through:
                node(through, [joined], name)
            if groups < HEADS:
                axis = constant(f"{part}_axis{layer}", np.array([2]))
                apart = node("Unsqueeze", [whole[part], axis], f"{part}_group{layer}")
                repeats = constant(f"{part}_repeats{layer}", np.array([1, 1, HEADS // groups, 1, 1]))
                heads = node("Expand", [apart, repeats], f"{part}_heads{layer}")
                shape = constant(f"all_{part}_shape{layer}", np.array([1, HEADS, -1, DEPTH]))
                whole[part] = node("Reshape", [heads, shape], f"all_{part}{layer}")
        turned = node("Transpose", [whole["key"]], f"turned{layer}", perm=[0, 1, 3, 2])
        scores = node("MatMul", [parts["query"], turned], f"scores{layer}")
        scale = constant(f"scale{layer}", np.array(DEPTH**-0.5, "float32"))
        scores = node("Mul", [scores, scale], f"scaled{layer}")
        if mask:
            scores = node("Add", [scores, "mask"], f"masked{layer}")
        weights = node("Softmax", [scores], f"weights{layer}", axis=-1)
        heads = node("MatMul", [weights, whole["value"]], f"heads{layer}")
        rows = node("Transpose", [heads], f"heads_turned{layer}", perm=[0, 2, 1, 3])
        shape = constant(f"shape{layer}", np.array([1, -1, WIDTH]))
        x = node("Add", [node("Reshape", [rows, shape], f"rows{layer}"), x], f"y{layer}")
    outputs.insert(0, tensor(x, [1, seq, WIDTH]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def states_of(model: onnx.ModelProto) -> dict[str, str]:
    """The decoder's results by the inputs that they become."""
    names = [value.name for value in model.graph.input if value.name.startswith("past_")]
    return {name: name.replace("past_", "present_") for name in names}


class FedBack:
    """onnxruntime, which is handed all keys and values each time."""

    def __init__(self, model: onnx.ModelProto, past: Mapping[str, np.ndarray] | None = None) -> None:
        self.states = states_of(model)
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        heads = {i.name: i.shape[1] for i in self.session.get_inputs() if i.name in self.states}
        empty = {name: np.zeros((1, heads[name], 0, DEPTH), "float32") for name in self.states}
        self.past = dict(past or empty)

    @property
    def length(self) -> int:
        return next(iter(self.past.values())).shape[2]

    def run(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        names = [output.name for output in self.session.get_outputs()]
        results = dict(zip(names, self.session.run(names, {**inputs, **self.past}), strict=True))
        self.past = {name: results[result] for name, result in self.states.items()}
        return results[names[0]]
