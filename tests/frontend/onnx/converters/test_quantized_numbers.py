"""Scales, zero points and axes that are none: one line with the node's name and what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan

IMAGE = (2, 4, 5, 6)


def model(kind: str, operands: list[Any], **attributes: Any) -> onnx.ModelProto:
    """A node whose first operand is an input; arrays are constants, None is left out."""
    names = ["x" if at == 0 else "" if one is None else f"c{at}" for at, one in enumerate(operands)]
    constants = [
        numpy_helper.from_array(np.asarray(one), name)
        for name, one in zip(names[1:], operands[1:], strict=True)
        if name
    ]
    source = TensorProto.FLOAT if kind in ("QuantizeLinear", "DynamicQuantizeMatMul") else TensorProto.UINT8
    domain = "com.microsoft" if kind in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat") else ""
    graph = helper.make_graph(
        [helper.make_node(kind, names, ["y"], name="culprit", domain=domain, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", source, operands[0])],
        [onnx.ValueInfoProto(name="y")],
        constants,
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


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


@pytest.mark.parametrize(("kind", "operands", "attributes", "message"), BROKEN)
def test_numbers_that_are_none(
    kind: str, operands: list[Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(tvm_mxplan.InvalidInputError) as error:
        tvm_mxplan.compile(model(kind, operands, **attributes))
    told = str(error.value)
    assert "culprit" in told and kind in told and message in told
    assert "\n" not in told
