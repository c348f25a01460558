"""LSTM, GRU and RNN in all directions, with all operands, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import check, normal

import tvm_mxplan
from tvm_mxplan.testing.reference import onnxruntime_outputs

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


def test_an_open_number_of_steps_and_samples_without_a_library():
    """One kernel, whose sizes are told by its tensors."""
    parsed, inputs = layer("GRU", "bidirectional", full=True)
    named = {"x": ("steps", "samples"), "lengths": ("samples",), "h": (None, "samples")}
    for value in parsed.graph.input:
        for axis, name in enumerate(named[value.name]):
            if name:
                value.type.tensor_type.shape.dim[axis].dim_param = name
    compiled = tvm_mxplan.compile(parsed, "llvm")
    for steps, samples in ((3, 3), (1, 1), (7, 2)):
        inputs = {
            "x": normal(steps, samples, SIZE),
            "lengths": np.arange(steps, steps - samples, -1).clip(1).astype("int32"),
            "h": normal(2, samples, HIDDEN),
        }
        for ours, theirs in zip(compiled(**inputs), onnxruntime_outputs(parsed, inputs), strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("per", ["direction", "gate"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_weights_of_integers(per, dtype):
    """DynamicQuantizeLSTM is the LSTM of the numbers that its weights stand for."""
    count, gates = 2, 4 * HIDDEN
    random = np.random.default_rng(3)
    # Twice 255 times a weight of more than 64 saturates in onnxruntime's products on processors without VNNI.
    low, high = (-63, 64) if dtype == "int8" else (0, 255)
    constants, floats = {}, {}
    for name, rows in (("w", SIZE), ("r", HIDDEN)):
        integers = random.integers(low, high, (count, rows, gates)).astype(dtype)
        shape = (count,) if per == "direction" else (count, gates)
        scale = random.uniform(0.004, 0.006, shape).astype("float32")
        # onnxruntime takes no others: equal ones, of signed integers for each gate zeros alone.
        signed_gates = (per, dtype) == ("gate", "int8")
        zero = np.full(shape, 0 if signed_gates else (low + high) // 2 + random.integers(-9, 10), dtype)
        constants |= {name: integers, f"{name}_scale": scale, f"{name}_zero": zero}
        around = integers.astype("float32") - zero.reshape(count, 1, -1)
        floats[name] = (around * scale.reshape(count, 1, -1)).swapaxes(1, 2).copy()
    names = ["x", "w", "r", "", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    plain, inputs = layer("LSTM", "bidirectional", full=False)
    quantised = onnx.ModelProto()
    quantised.CopyFrom(plain)
    (node,) = quantised.graph.node
    node.op_type, node.domain = "DynamicQuantizeLSTM", "com.microsoft"
    node.input[:] = names
    quantised.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for parsed, arrays in ((quantised, constants), (plain, floats)):
        del parsed.graph.initializer[:]
        parsed.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())
    results = tvm_mxplan.compile(quantised, "llvm")(**inputs)
    for ours, exact in zip(results, onnxruntime_outputs(plain, inputs), strict=True):
        np.testing.assert_allclose(ours.numpy(), exact, rtol=1e-4, atol=1e-5)
    for ours, rounded in zip(results, onnxruntime_outputs(quantised, inputs), strict=True):
        assert np.abs(ours.numpy() - rounded).max() < 0.05
