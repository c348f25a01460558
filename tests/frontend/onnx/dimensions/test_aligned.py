"""Broadcasting of versions before 7, from an axis on."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import normal

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError

SPREAD = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Less": np.less,
    "Greater": np.greater,
}


def binary(
    op_type: str, second: np.ndarray, *, known: bool, named: bool = False, **attributes: int
) -> onnx.ModelProto:
    extents = ["n", 3, "h", 3] if named else [3, 3, 3, 3]
    inputs = [helper.make_tensor_value_info("x", 1, extents)]
    if not known:
        inputs.append(helper.make_tensor_value_info("b", 1, second.shape))
    kind = 9 if op_type in ("Less", "Greater") else 1
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x", "b"], ["y"], broadcast=1, **attributes)],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(second, "b")] if known else [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=4)


@pytest.mark.parametrize("op_type", SPREAD)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("axes", [1, 2])
def test_the_second_operand_stands_at_the_axis(op_type: str, known: bool, axes: int) -> None:
    """All extents are 3: by the last axes, results would be wrong and nothing would say so."""
    x, b = np.abs(normal(3, 3, 3, 3)), np.abs(normal(*[3] * axes))
    executable = tvm_mxplan.compile(binary(op_type, b, known=known, named=known, axis=1), "llvm")
    (found,) = executable(x) if known else executable(x, b)
    expected = SPREAD[op_type](x, b.reshape(*b.shape, *[1] * (3 - axes)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_without_an_axis_it_stands_at_the_end() -> None:
    x, b = normal(3, 3, 3, 3), normal(3)
    (found,) = tvm_mxplan.compile(binary("Sub", b, known=False), "llvm")(x, b)
    np.testing.assert_allclose(found.numpy(), x - b, rtol=1e-6)


def test_more_axes_than_there_are_behind() -> None:
    with pytest.raises(InvalidInputError, match="2 axes from axis 3 of a tensor of 4"):
        tvm_mxplan.compile(binary("Add", normal(3, 3), known=False, axis=3), "llvm")
