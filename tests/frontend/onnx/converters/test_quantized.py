"""Quantised operators, of which integers are compared exactly."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import answers, check, of_node, operators

from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.testing.reference import onnxruntime_outputs

RANDOM = np.random.default_rng(3)


def integers(dtype: str, *shape: int) -> np.ndarray:
    ends = np.iinfo(dtype)
    return RANDOM.integers(ends.min, ends.max + 1, shape).astype(dtype)


def graph(
    kind: str,
    inputs: dict[str, np.ndarray],
    constants: dict[str, np.ndarray],
    order: list[str],
    result: str,
    **attributes: object,
) -> onnx.ModelProto:
    def info(name: str, dtype: np.dtype, shape: object) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    made = helper.make_graph(
        [helper.make_node(kind, order, ["y"], **attributes)],
        "g",
        [info(name, data.dtype, data.shape) for name, data in inputs.items()],
        [info("y", result, None)],
        [numpy_helper.from_array(data, name) for name, data in constants.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [3, 67, 500])
@pytest.mark.parametrize("weights", ["uint8", "int8"])
def test_conv_integer_is_exact_whatever_the_depth(channels, weights):
    constants = {"w": integers(weights, 5, channels, 3, 3), "xz": np.uint8(131), "wz": np.asarray(9, weights)}
    inputs = {"x": integers("uint8", 2, channels, 7, 6)}
    check(
        graph("ConvInteger", inputs, constants, ["x", "w", "xz", "wz"], "int32", pads=[1, 0, 1, 1]),
        inputs,
        atol=0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("depth", [7, 1031, 5003, 20011])
def test_matmul_integer_is_exact_whatever_the_depth(depth):
    constants = {"w": integers("int8", depth, 5), "xz": np.uint8(3)}
    inputs = {"x": integers("uint8", 4, depth)}
    check(
        graph("MatMulInteger", inputs, constants, ["x", "w", "xz"], "int32"),
        inputs,
        atol=0,
        by_definition=True,
    )


def test_qlinear_conv_with_a_scale_for_each_channel():
    constants = {
        "xs": np.float32(0.021),
        "xz": np.uint8(120),
        "w": integers("int8", 6, 4, 3, 3),
        "ws": RANDOM.uniform(0.01, 0.05, 6).astype("float32"),
        "wz": np.zeros(6, "int8"),
        "ys": np.float32(0.47),
        "yz": np.uint8(117),
        "b": RANDOM.integers(-3000, 3000, 6).astype("int32"),
    }
    inputs = {"x": integers("uint8", 1, 4, 8, 7)}
    order = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    check(
        graph("QLinearConv", inputs, constants, order, "uint8", strides=[2, 1]),
        inputs,
        atol=0,
        by_definition=True,
    )


def test_qlinear_matmul():
    constants = {
        "xs": np.float32(0.02),
        "xz": np.uint8(120),
        "w": integers("uint8", 17, 6),
        "ws": np.float32(0.013),
        "wz": np.uint8(125),
        "ys": np.float32(0.31),
        "yz": np.uint8(110),
    }
    inputs = {"x": integers("uint8", 3, 17)}
    check(
        graph("QLinearMatMul", inputs, constants, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], "uint8"),
        inputs,
        atol=0,
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_whole_numbers_are_quantized(dtype):
    x = np.arange(-40, 40, dtype="int32")
    numbers = {"s": np.float32(0.7), "z": np.asarray(3, dtype)}
    check(
        of_node(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]), {"x": x}, numbers),
        {"x": x},
        0,
        True,
    )


def test_a_scalar_is_quantized_dynamically():
    x = np.array(2.5, "float32")
    check(of_node(helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"]), {"x": x}), {"x": x})


@pytest.mark.parametrize("axis", [1, 2])
def test_softmax_of_integers_over_all_axes_from_one_on(axis):
    x = integers("uint8", 2, 3, 4)
    numbers = {"s": np.float32(0.05), "z": np.uint8(100), "t": np.float32(1 / 256), "y0": np.uint8(0)}
    node = helper.make_node(
        "QLinearSoftmax", ["x", *numbers], ["y"], domain="com.microsoft", opset=12, axis=axis
    )
    parsed = of_node(node, {"x": x}, numbers)
    parsed.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    check(parsed, {"x": x}, atol=1)


@pytest.mark.parametrize("kind", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
@pytest.mark.parametrize("operator, shape, axis", [("Conv", (6, 4, 3, 3), 0), ("MatMul", (17, 6), 1)])
def test_weights_of_four_bits_before_opset_21(kind, operator, shape, axis):
    """Against the real numbers: onnxruntime rounds what it multiplies by a matrix of four bits."""
    x = RANDOM.standard_normal((2, 4, 8, 17)).astype("float32")
    row = [1 if at != axis else 6 for at in range(len(shape))]
    scale = RANDOM.uniform(0.01, 0.05, 6).astype("float32")
    low, zero = (-8, np.zeros(6, int)) if kind == onnx.TensorProto.INT4 else (0, RANDOM.integers(0, 16, 6))
    numbers = RANDOM.integers(low, low + 16, shape)
    real = ((numbers - zero.reshape(row)) * scale.reshape(row)).astype("float32")
    product = helper.make_node(operator, ["x", "v"], ["y"])
    (expected,) = onnxruntime_outputs(of_node(product, {"x": x}, {"v": real}), {"x": x})
    parsed = of_node(product, {"x": x}, {"s": scale})
    parsed.graph.node.insert(
        0, helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"], domain="com.microsoft", axis=axis)
    )
    parsed.graph.initializer.append(helper.make_tensor("w", kind, shape, numbers.ravel().tolist()))
    parsed.graph.initializer.append(helper.make_tensor("z", kind, (6,), zero.tolist()))
    np.testing.assert_allclose(answers(parsed, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8"])
def test_conversions_of_onnxruntimes_domain(dtype):
    x = RANDOM.standard_normal((2, 5, 7)).astype("float32")
    numbers = {"s": np.float32(0.0002), "z": np.asarray(77, dtype)}
    parsed = of_node(
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft"), {"x": x}, numbers
    )
    parsed.graph.node.append(
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain="com.microsoft")
    )
    parsed.graph.output.append(onnx.ValueInfoProto(name="y"))
    parsed.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    assert operators(parsed).count("quantize") == 1 and operators(parsed).count("dequantize") == 1
    check(parsed, {"x": x}, atol=0)


def test_scales_of_onnxruntimes_conversions_are_checked():
    x = np.ones((2, 3), "float32")
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], name="q", domain="com.microsoft")
    parsed = of_node(node, {"x": x}, {"s": np.float32(-0.1), "z": np.uint16(0)})
    with pytest.raises(InvalidInputError, match=r"node 'q'.* scale: expected finite numbers above 0"):
        import_model(parsed)


@pytest.mark.parametrize("kind", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_averages_of_integers_with_channels_first_and_last(kind, channels_last):
    x = integers("uint8", *((2, 9, 8, 5) if channels_last else (2, 5, 9, 8)))
    numbers = {"s": np.float32(0.05), "z": np.uint8(100), "t": np.float32(0.037), "y0": np.uint8(90)}
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    node = helper.make_node(
        kind,
        ["x", *numbers],
        ["y"],
        domain="com.microsoft",
        channels_last=channels_last,
        **(window if kind == "QLinearAveragePool" else {}),
    )
    parsed = of_node(node, {"x": x}, numbers)
    parsed.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="y"))
    parsed.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    check(parsed, {"x": x}, atol=1)
