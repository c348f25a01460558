"""Operands whose shapes contradict each other: one line when compiling, or of the calls that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.testing.reference import onnxruntime_outputs

UNCACHED = {"cache": "disabled"}
RANDOM = np.random.default_rng(3)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


ROWS = np.array([[0, 1], [3, 2]])
NORM = {name: numbers(3) for name in ("scale", "shift", "mean")}
Attributes = dict[str, object]
CASES: dict[str, tuple[str, Sequence[int | str], Mapping[str, np.ndarray], int, Attributes]] = {
    # Operator; its input with a named dimension; other operands; the name's only number; attributes.
    "convolution": ("Conv", ("b", "n", 5, 5), {"w": numbers(3, 2, 3, 3)}, 2, {}),
    "groups": ("Conv", (1, "n", 5, 5), {"w": numbers(6, 2, 3, 3)}, 4, {"group": 2}),
    "transposed": ("ConvTranspose", (1, "n", 5, 5), {"w": numbers(2, 3, 3, 3)}, 2, {}),
    "batch norm": ("BatchNormalization", (2, "n", 4), {**NORM, "variance": np.abs(numbers(3)) + 1}, 3, {}),
    "instance norm": ("InstanceNormalization", (2, "n", 4), {"s": NORM["scale"], "t": NORM["shift"]}, 3, {}),
    "layer norm": ("LayerNormalization", ("n", 4), {"s": numbers(2, 4)}, 2, {}),
    "lstm": (
        "LSTM", (5, "n", 4),
        {"w": numbers(1, 12, 4), "r": numbers(1, 12, 3), "": ROWS, " ": ROWS, "h": numbers(1, 2, 3)},
        2, {"hidden_size": 3},
    ),
    "gru": (
        "GRU", (5, "n", 4),
        {"w": numbers(1, 9, 4), "r": numbers(1, 9, 3), "": ROWS, " ": ROWS, "h": numbers(1, 2, 3)},
        2, {"hidden_size": 3},
    ),
    "grid": ("GridSample", ("n", 3, 5, 5), {"g": numbers(2, 4, 4, 2) / 4}, 2, {}),
    "einsum": ("Einsum", ("n", 4, 5), {"c": numbers(2, 5, 6)}, 2, {"equation": "bij,bjk->bik"}),
    "reversed": ("ReverseSequence", ("n", 4), {"l": np.array([2, 3])}, 2, {"batch_axis": 0, "time_axis": 1}),
    "batch of indices": ("GatherND", ("n", 4), {"i": np.array([[0], [3]])}, 2, {"batch_dims": 1}),
    "gemm": ("Gemm", ("n", 4), {"w": numbers(4, 4), "c": numbers(2, 4)}, 2, {}),
    "gathered elements": ("GatherElements", ("n", 4), {"i": ROWS}, 2, {"axis": 1}),
    "scattered parts": ("ScatterND", (4, "n"), {"i": np.array([[3], [1]]), "u": numbers(2, 3)}, 3, {}),
    "scattered elements": ("ScatterElements", ("n", 4), {"i": ROWS, "u": numbers(2, 2)}, 2, {"axis": 1}),
}  # fmt: skip


def model(name: str, extent: int | None = None) -> onnx.ModelProto:
    """The case's model; with an extent, in the place of the name."""
    operator, shape, operands, _, attributes = CASES[name]
    stated = [extent if extent is not None and dim == "n" else dim for dim in shape]
    given = [key.strip() for key in operands]
    node = helper.make_node(operator, ["x", *given], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "contradicts",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, stated)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, key) for key, array in operands.items() if key.strip()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 9
    return made


def data(name: str, extent: int) -> dict[str, np.ndarray]:
    shape = [extent if dim == "n" else 2 if dim == "b" else int(dim) for dim in CASES[name][1]]
    return {"x": numbers(*shape)}


def first(answer: object) -> np.ndarray:
    return (answer if hasattr(answer, "numpy") else answer[0]).numpy()  # type: ignore[index,attr-defined]


@pytest.mark.parametrize("name", CASES)
def test_a_named_dimension_has_the_number_that_other_operands_demand(name: str) -> None:
    right = CASES[name][3]
    executable = tvm_mxplan.compile(model(name), options=UNCACHED)
    inputs = data(name, right)
    (expected,) = onnxruntime_outputs(model(name), inputs)[:1]
    np.testing.assert_allclose(first(executable(**inputs)), expected, rtol=1e-4, atol=1e-5)
    bounded = name in ("gathered elements", "scattered elements")
    for wrong in (1, *(() if bounded else (right + 1,))):
        with pytest.raises(InvalidInputError) as error:
            executable(**data(name, wrong))
        assert CASES[name][0] in str(error.value) and "\n" not in str(error.value).strip()


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"einsum"}))  # which takes 1 for any number
def test_numbers_that_contradict_each_other_are_the_model_s_mistake(name: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        tvm_mxplan.compile(model(name, 1), options=UNCACHED)
    assert "\n" not in str(error.value).strip()


def test_a_dimension_that_broadcasts_stays_open() -> None:
    """A bias of one row, a scale of one number, and one letter of which an operand has 1."""
    for operator, shape, operands, attributes in (
        ("Gemm", ["n", 4], {"w": numbers(4, 3), "c": numbers(1, 3)}, {}),
        ("LayerNormalization", ["n", 4], {"s": numbers(1, 4)}, {}),
        ("Einsum", ["n", 4], {"c": numbers(4, 3)}, {"equation": "ij,jk->ik"}),
        ("GatherElements", ["n", 4], {"i": np.array([[0, 3]])}, {"axis": 1}),
    ):
        node = helper.make_node(operator, ["x", *operands], ["y"], **attributes)
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        constants = [numpy_helper.from_array(array, key) for key, array in operands.items()]
        graph = helper.make_graph([node], "open", inputs, outputs, constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        made.ir_version = 9
        executable = tvm_mxplan.compile(made, options=UNCACHED)
        for extent in (1, 3):
            x = numbers(extent, 4)
            (expected,) = onnxruntime_outputs(made, {"x": x})
            np.testing.assert_allclose(first(executable(x=x)), expected, rtol=1e-4, atol=1e-5)
