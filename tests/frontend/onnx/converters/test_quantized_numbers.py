"""Scales, zero points and axes that are none: one line with the node's name and what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan

IMAGE = (2, 4, 5, 6)
_OF_REAL = ("QuantizeLinear", "DynamicQuantizeMatMul")
_OF_ONE = (
    "QLinearSigmoid",
    "QLinearLeakyRelu",
    "QLinearSoftmax",
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
)
_ONNXRUNTIME = (
    "DynamicQuantizeMatMul",
    "MatMulIntegerToFloat",
    "QLinearAdd",
    "QLinearMul",
    "QLinearConcat",
    "QGemm",
    *_OF_ONE,
)


def model(kind: str, operands: list[Any], **attributes: Any) -> onnx.ModelProto:
    """A node whose first operand is an input; arrays are constants, None is left out."""
    names = ["x" if at == 0 else "" if one is None else f"c{at}" for at, one in enumerate(operands)]
    constants = [
        numpy_helper.from_array(np.asarray(one), name)
        for name, one in zip(names[1:], operands[1:], strict=True)
        if name
    ]
    source = attributes.pop("of", TensorProto.FLOAT if kind in _OF_REAL else TensorProto.UINT8)
    results = ["y", "s", "z"][: 3 if kind == "DynamicQuantizeLinear" else 1]
    domain = "com.microsoft" if kind in _ONNXRUNTIME else ""
    graph = helper.make_graph(
        [helper.make_node(kind, names, results, name="culprit", domain=domain, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", source, operands[0])],
        [onnx.ValueInfoProto(name=result) for result in results],
        constants,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers if len(numbers) > 1 else numbers[0], "float32")


W = np.ones((3, 4, 1, 1), "int8")
MATRIX = np.ones((6, 3), "int8")
BROKEN = [
    ("DynamicQuantizeMatMul", [IMAGE, MATRIX, f32(0.0)], {}, "scale: expected finite numbers above 0, got 0"),
    ("DynamicQuantizeMatMul", [IMAGE, MATRIX, f32(1, 2)], {}, "expected 3 along axis -1, got 2"),
    (
        "DynamicQuantizeMatMul",
        [IMAGE, MATRIX, f32(0.1), np.uint8(1)],
        {},
        "zero point: expected int8, the type of the integers, got uint8",
    ),
    (
        "MatMulIntegerToFloat",
        [IMAGE, MATRIX, f32(0.1), f32(-0.1)],
        {},
        "scale: expected finite numbers above 0, got -0.1",
    ),
    (
        "MatMulIntegerToFloat",
        [IMAGE, MATRIX, f32(np.nan), f32(0.1), np.uint8(3), np.int8(0)],
        {},
        "scale: expected finite numbers above 0, got nan",
    ),
    ("DequantizeLinear", [IMAGE, f32(0.0)], {}, "scale: expected finite numbers above 0, got 0"),
    ("DequantizeLinear", [IMAGE, f32(-0.5)], {}, "scale: expected finite numbers above 0, got -0.5"),
    (
        "QuantizeLinear",
        [IMAGE, f32(np.nan), np.uint8(3)],
        {},
        "scale: expected finite numbers above 0, got nan",
    ),
    ("QuantizeLinear", [IMAGE, f32(np.inf)], {}, "scale: expected finite numbers above 0, got inf"),
    ("DequantizeLinear", [IMAGE, f32(1, 2, 3, 0)], {"axis": 1}, "above 0, got 0"),
    (
        "DequantizeLinear",
        [IMAGE, f32(0.5), np.int8(3)],
        {},
        "zero point: expected uint8, the type of the integers",
    ),
    (
        "DequantizeLinear",
        [IMAGE, f32(1, 2, 3, 4)],
        {"axis": 4},
        "axis: expected one of a tensor of rank 4, got 4",
    ),
    ("DequantizeLinear", [IMAGE, f32(1, 2, 3)], {"axis": 1}, "expected 4 along axis 1, got 3"),
    ("QuantizeLinear", [IMAGE, f32(1, 2, 3)], {"axis": -1}, "expected 6 along axis -1, got 3"),
    (
        "QLinearConv",
        [IMAGE, f32(0.1), np.uint8(1), W, f32(0.1, 0.0, 0.2), np.int8(0), f32(1.0), np.uint8(0)],
        {},
        "scale: expected finite numbers above 0, got 0",
    ),
    (
        "QLinearConv",
        [IMAGE, f32(0.1), np.uint8(1), W, f32(0.1, 0.2), np.zeros(2, "int8"), f32(1.0), np.uint8(0)],
        {},
        "expected 3 along axis 0, got 2",
    ),
    (
        "QLinearMatMul",
        [
            (5, 4),
            f32(0.1),
            np.uint8(1),
            np.ones((4, 3), "int8"),
            f32(1, 2),
            np.zeros(2, "int8"),
            f32(1),
            np.uint8(0),
        ],
        {},
        "expected 3 along axis -1, got 2",
    ),
]


FLOAT = {"of": TensorProto.FLOAT}
BLOCKS = {"axis": 0, "block_size": 2}
MIXED = [
    (
        "ConvInteger",
        [IMAGE, W, np.int8(1)],
        {},
        "zero point: expected uint8, the type of the integers, got int8",
    ),
    ("ConvInteger", [IMAGE, W, np.uint8(1), np.uint8(1)], {}, "zero point: expected int8"),
    ("ConvInteger", [IMAGE, W, f32(1.0)], {}, "zero point: expected uint8"),
    ("ConvInteger", [IMAGE, W, np.zeros(4, "uint8")], {}, "zero point: expected one of each, got 4"),
    (
        "ConvInteger",
        [IMAGE, W, np.uint8(1), np.zeros(2, "int8")],
        {},
        "zero point: expected 3 along axis 0, got 2",
    ),
    ("ConvInteger", [IMAGE, W], FLOAT, "operand 0: expected uint8 or int8, got float32"),
    ("MatMulInteger", [IMAGE, MATRIX, np.int8(1)], {}, "zero point: expected uint8"),
    ("MatMulInteger", [IMAGE, MATRIX, np.uint8(1), np.uint8(1)], {}, "zero point: expected int8"),
    (
        "MatMulInteger",
        [IMAGE, MATRIX, np.zeros(2, "uint8")],
        {},
        "zero point: expected 5 along axis -2, got 2",
    ),
    (
        "MatMulInteger",
        [IMAGE, MATRIX.astype("float32")],
        {},
        "operand 1: expected uint8 or int8, got float32",
    ),
    ("MatMulInteger", [IMAGE, MATRIX], FLOAT, "operand 0: expected uint8 or int8, got float32"),
    ("DynamicQuantizeLinear", [IMAGE], {}, "operand 0: expected float32, got uint8"),
    (
        "DynamicQuantizeLinear",
        [IMAGE],
        {"of": TensorProto.DOUBLE},
        "operand 0: expected float32, got float64",
    ),
    (
        "QuantizeLinear",
        [IMAGE, f32(1.0)],
        {"of": TensorProto.UINT8},
        "operand 0: expected float32 or float64",
    ),
    ("QuantizeLinear", [IMAGE, f32(1.0), f32(1.0)], {}, "zero point: expected integers of 16 bits at most"),
    ("QuantizeLinear", [(4, 6), np.zeros((2, 6), "float32")], BLOCKS, "above 0, got 0"),
    ("DequantizeLinear", [IMAGE, f32(1.0)], FLOAT, "operand 0: expected integers, got float32"),
    ("DequantizeLinear", [IMAGE, np.int32(1)], {}, "scale: expected floating-point numbers, got int32"),
    ("DequantizeLinear", [(4, 6), np.full((2, 6), np.nan, "float32")], BLOCKS, "above 0, got nan"),
    (
        "DequantizeLinear",
        [(4, 6), np.ones((2, 6), "float32")],
        {"axis": 5, "block_size": 2},
        "axis: expected one of a tensor of rank 2, got 5",
    ),
    (
        "DequantizeLinear",
        [(4, 6), f32(1, 2)],
        BLOCKS,
        "scale: expected rank 2, one for each block, got rank 1",
    ),
    (
        "DequantizeLinear",
        [(4, 6), np.ones((2, 6), "float32")],
        {"axis": 0, "block_size": -2},
        "block_size: expected a number above 0, got -2",
    ),
    (
        "QLinearConv",
        [IMAGE, f32(0.1), np.uint8(1), W, f32(0.1), np.int8(0), f32(1.0), np.int32(0)],
        {},
        "zero point: expected integers of 16 bits at most, got int32",
    ),
    (
        "QLinearConv",
        [IMAGE, f32(0.1), np.uint8(1), W, f32(0.1), np.int8(0), f32(1.0), np.uint8(0), f32(1, 2, 3)],
        {},
        "operand 8: expected int32, got float32",
    ),
]


SCALE = f32(0.1)
IMAGES = np.ones(IMAGE, "uint8")
WINDOW = {"QLinearAveragePool": {"kernel_shape": [2, 2]}, "QLinearSoftmax": {"opset": 13}}
OF_ONNXRUNTIME = [
    *(
        (kind, [IMAGE, *numbers], WINDOW.get(kind, {}), message)
        for kind in _OF_ONE
        for numbers, message in (
            ([f32(0.0), np.uint8(1), SCALE, np.uint8(0)], "scale: expected finite numbers above 0, got 0"),
            (
                [SCALE, np.uint8(1), f32(np.nan), np.uint8(0)],
                "scale: expected finite numbers above 0, got nan",
            ),
            ([SCALE, np.int8(1), SCALE, np.uint8(0)], "zero point: expected uint8, the type of the integers"),
            ([SCALE, np.uint8(1), SCALE, np.int32(0)], "zero point: expected integers of 16 bits at most"),
            (
                [SCALE, np.uint8(1), f32(1, 2), np.uint8(0)],
                "scale and zero point: expected one of each, got 2",
            ),
        )
    ),
    *(
        (
            kind,
            [IMAGE, SCALE, np.uint8(1), IMAGES.astype("int8"), SCALE, np.int8(0), SCALE, np.uint8(0)],
            {},
            "operand 3: expected uint8, got int8",
        )
        for kind in ("QLinearAdd", "QLinearMul")
    ),
    (
        "QGemm",
        [(5, 6), SCALE, np.uint8(0), MATRIX, f32(-1.0), np.int8(0), None, SCALE, np.uint8(0)],
        {},
        "scale: expected finite numbers above 0, got -1",
    ),
    (
        "QGemm",
        [(5, 6), SCALE, np.uint8(0), MATRIX, SCALE, np.int8(0), f32(1, 2, 3), SCALE, np.uint8(0)],
        {},
        "operand 6: expected int32, got float32",
    ),
    (
        "QGemm",
        [(5, 6), SCALE, np.uint8(0), MATRIX, f32(1, 2), np.zeros(2, "int8"), None, SCALE, np.uint8(0)],
        {},
        "expected 3 along axis -1, got 2",
    ),
    (
        "QGemm",
        [(5, 6), SCALE, np.uint8(0), MATRIX.T, f32(1, 2), np.zeros(2, "int8"), None, SCALE, np.uint8(0)],
        {"transB": 1},
        "expected 3 along axis 0, got 2",
    ),
]


def test_numbers_of_concatenated_tensors() -> None:
    """Each comes with a scale and a zero point of its own, behind those of the result."""
    pieces = ["s", "z", "x", "s", "z", "x", "bad", "z"]
    constants = {"s": f32(0.1), "z": np.uint8(1), "bad": f32(np.inf)}
    graph = helper.make_graph(
        [helper.make_node("QLinearConcat", pieces, ["y"], "culprit", domain="com.microsoft", axis=1)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, IMAGE)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(one), name) for name, one in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    with pytest.raises(tvm_mxplan.InvalidInputError, match=r"culprit.*above 0, got inf"):
        tvm_mxplan.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10))


@pytest.mark.parametrize(("kind", "operands", "attributes", "message"), [*BROKEN, *MIXED, *OF_ONNXRUNTIME])
def test_numbers_that_are_none(
    kind: str, operands: list[Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(tvm_mxplan.InvalidInputError) as error:
        tvm_mxplan.compile(model(kind, operands, **attributes))
    told = str(error.value)
    assert "culprit" in told and kind in told and message in told
    assert "\n" not in told
