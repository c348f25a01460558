"""Operators as their first versions mean them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import answers, normal, of_node


def made(node, inputs, constants=None, opset=1):
    (result,) = answers(of_node(node, inputs, constants, opset), inputs)
    return result


def test_concat_without_an_axis():
    inputs = {"a": normal(2, 3, 4), "b": normal(2, 5, 4)}
    result = made(helper.make_node("Concat", ["a", "b"], ["y"]), inputs)
    np.testing.assert_array_equal(result, np.concatenate(list(inputs.values()), 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_tile_along_one_axis(axis):
    numbers = {"times": np.array([3], "float32"), "axis": np.array([axis], "float32")}
    x = normal(2, 3)
    result = made(helper.make_node("Tile", ["x", "times", "axis"], ["y"]), {"x": x}, numbers)
    np.testing.assert_array_equal(result, np.tile(x, [3, 1] if axis == 0 else [1, 3]))


def test_reshape_by_an_attribute():
    x = normal(2, 3, 4)
    result = made(helper.make_node("Reshape", ["x"], ["y"], shape=[0, -1]), {"x": x})
    np.testing.assert_array_equal(result, x.reshape(2, 12))


@pytest.mark.parametrize("to", ["INT32", "DOUBLE", "FLOAT16"])
def test_cast_to_a_name(to):
    x = 10 * normal(2, 3)
    dtype = {"INT32": "int32", "DOUBLE": "float64", "FLOAT16": "float16"}[to]
    result = made(helper.make_node("Cast", ["x"], ["y"], to=to), {"x": x})
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, x.astype(dtype))


def test_batch_normalization_with_statistics_for_each_element():
    rows = {name: np.abs(normal(3, 4)) for name in ("s", "b", "m", "v")}
    x = normal(2, 3, 4)
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], spatial=0)
    expected = (x - rows["m"]) / np.sqrt(rows["v"] + 1e-5) * rows["s"] + rows["b"]
    np.testing.assert_allclose(made(node, {"x": x}, rows, 7), expected, rtol=1e-5, atol=1e-6)
