"""MatMulNBits: weights of few bits against their definition; what contradicts attributes is one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

RANDOM = np.random.default_rng(11)
ROWS, DEPTH, BLOCK = 7, 67, 16
BLOCKS = 5


def operands(bits: int = 4) -> dict[str, np.ndarray]:
    return {
        "B": RANDOM.integers(0, 256, (ROWS, BLOCKS, BLOCK * bits // 8)).astype("uint8"),
        "scales": (RANDOM.random(ROWS * BLOCKS) + 0.5).astype("float32"),
        "zero_points": RANDOM.integers(0, 256, ROWS * -(-BLOCKS * bits // 8)).astype("uint8"),
    }


def model(given: dict[str, np.ndarray], **attributes: Any) -> Any:
    stated = {"K": DEPTH, "N": ROWS, "bits": 4, "block_size": BLOCK, **attributes}
    node = helper.make_node("MatMulNBits", ["x", *given], ["y"], name="few", domain="com.microsoft", **stated)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in given.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def numbers(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """One number at a time, the lowest bits of a byte first."""
    rows = packed.reshape(ROWS, -1)
    found = np.zeros((ROWS, count), "int64")
    for row, at in np.ndindex(ROWS, count):
        found[row, at] = (int(rows[row, at * bits // 8]) >> (at * bits % 8)) & (2**bits - 1)
    return found


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_are_those_of_the_definition(bits: int) -> None:
    given = operands(bits)
    x = RANDOM.standard_normal((3, DEPTH)).astype("float32")
    zeros = numbers(given["zero_points"], bits, BLOCKS)
    whole = numbers(given["B"], bits, BLOCKS * BLOCK)[:, :DEPTH]
    block = np.arange(DEPTH) // BLOCK
    weights = (whole - zeros[:, block]) * given["scales"].reshape(ROWS, BLOCKS)[:, block]
    (ours,) = tvm_mxplan.compile(model(given, bits=bits), "llvm")(x)
    right = x @ weights.T
    np.testing.assert_allclose(ours.numpy(), right, rtol=1e-4, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize(
    "attributes, changed, said",
    [
        ({"bits": 3}, {}, "bits: expected one of 2, 4, 8, got 3"),
        ({"block_size": 24}, {}, "block_size: expected a power of two from 16 on, got 24"),
        ({"block_size": 8}, {}, "block_size: expected a power of two from 16 on, got 8"),
        ({"block_size": 32}, {}, "B: expected 336 numbers for K, N, bits and block_size, got 280"),
        ({"K": 66}, {}, "A: expected 66 columns, which is K, got 67"),
        ({"K": 0}, {}, "K: expected a number above 0, got 0"),
        ({"N": 8}, {}, "B: expected 320 numbers for K, N, bits and block_size, got 280"),
        ({}, {"B": np.zeros((7, 5, 8), "int8")}, "B: expected uint8, got int8"),
        ({}, {"scales": np.ones(34, "float32")}, "scales: expected 35 numbers"),
        ({}, {"scales": np.full(35, np.nan, "float32")}, "scales: expected finite numbers"),
        ({}, {"zero_points": np.zeros(35, "uint8")}, "zero_points: expected 21 numbers"),
        ({}, {"g_idx": np.full(67, 5, "int32")}, "g_idx: expected 67 blocks from 0 to 4, got 67 from 5 to 5"),
    ],
)
def test_operands_that_contradict_the_attributes(
    attributes: dict[str, int], changed: dict[str, np.ndarray], said: str
) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError)) as error:
        tvm_mxplan.compile(model({**operands(), **changed}, **attributes), "llvm")
    assert said in str(error.value) and "few" in str(error.value) and "\n" not in str(error.value)
