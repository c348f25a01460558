"""LSTM, GRU and RNN in all directions, with all operands, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import check, normal

STEPS, BATCH, SIZE, HIDDEN = 3, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(
    kind: str, direction: str, *, full: bool, **attributes: object
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one layer; ``full`` has biases, lengths, initial states and, for LSTM, peepholes."""
    count = 2 if direction == "bidirectional" else 1
    rows = GATES[kind] * HIDDEN
    constants = {"w": normal(count, rows, SIZE), "r": normal(count, rows, HIDDEN) / 2}
    inputs = {"x": normal(STEPS, BATCH, SIZE)}
    names = ["x", "w", "r"]
    if full:
        constants["b"] = normal(count, 2 * rows)
        inputs |= {"lengths": np.array([3, 1, 2], "int32"), "h": normal(count, BATCH, HIDDEN)}
        names += ["b", "lengths", "h"]
        if kind == "LSTM":
            inputs["c"] = normal(count, BATCH, HIDDEN)
            constants["p"] = normal(count, 3 * HIDDEN)
            names += ["c", "p"]
    outputs = ["y", "y_h", "y_c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, direction=direction, hidden_size=HIDDEN, **attributes)
    types = {np.dtype("float32"): 1, np.dtype("int32"): 6}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, types[data.dtype], data.shape) for name, data in inputs.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [numpy_helper.from_array(data, name) for name, data in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), inputs


@pytest.mark.parametrize(
    ("direction", "full"), [("forward", True), ("reverse", False), ("bidirectional", True)]
)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers(kind, direction, full):
    check(*layer(kind, direction, full=full))


def test_a_gru_that_resets_behind_the_product():
    check(*layer("GRU", "forward", full=True, linear_before_reset=1))


def test_other_activations_with_parameters_of_their_own():
    names = ["HardSigmoid", "LeakyRelu", "Softsign"]
    check(
        *layer(
            "LSTM",
            "forward",
            full=False,
            activations=names,
            activation_alpha=[0.3, 0.1],
            activation_beta=[0.4],
        )
    )


def test_coupled_gates():
    check(*layer("LSTM", "forward", full=True, input_forget=1))
