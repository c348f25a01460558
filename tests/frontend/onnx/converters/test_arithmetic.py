"""Powers and products of whole numbers, thresholds, and whole numbers to pad with, worked out by numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tvm_mxplan


def results(
    node: onnx.NodeProto, constants: dict[str, np.ndarray] | None = None, **inputs: np.ndarray
) -> np.ndarray:
    """The result ``y`` of one node, of the first input's type."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in inputs.items()
    ]
    kind = values[0].type.tensor_type.elem_type
    graph = helper.make_graph(
        [node],
        "g",
        values,
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (result,) = tvm_mxplan.compile(made, "llvm")(**inputs)
    return result.numpy()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        ([1, -1, 2, 3, -2, 10], [-1], [1, -1, 0, 0, 0, 0]),
        ([1, -1, -1, 2], [-3, -3, -4, -3], [1, -1, 1, 0]),
        ([1, -1, -1, 0, 0], [65, 65, 66, 64, 128], [1, -1, 1, 0, 0]),
        ([3, -2, 0, 2], [4, 5, 0, 30], [81, -32, 1, 2**30]),
    ],
)
def test_whole_powers(dtype: str, base: Sequence[int], exponent: Sequence[int], expected: list[int]) -> None:
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    found = results(node, x=np.array(base, dtype), e=np.array(exponent, dtype))
    np.testing.assert_array_equal(found, np.array(expected, dtype))


def test_whole_exponents_of_more_bits_than_the_base() -> None:
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    found = results(node, x=np.array([0, -1, 2], "int32"), e=np.array([2**32, 2**32 + 1, -(2**32)], "int64"))
    np.testing.assert_array_equal(found, np.array([0, -1, 0], "int32"))


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (1.0, 0.5), (2.5, -1.5), (2.0, 3.0)])
@pytest.mark.parametrize("turned", [0, 1])
def test_whole_products_by_real_factors(alpha: float, beta: float, turned: int) -> None:
    random = np.random.default_rng(3)
    left, right, bias = (random.integers(-9, 9, shape).astype("int32") for shape in ((2, 3), (3, 4), (4,)))
    node = helper.make_node(
        "Gemm", ["x", "w", "c"], ["y"], alpha=alpha, beta=beta, transA=turned, transB=turned
    )
    expected = np.trunc(alpha * (left @ right) + beta * bias).astype("int32")
    if turned:
        left, right = left.T.copy(), right.T.copy()
    np.testing.assert_array_equal(results(node, x=left, w=right, c=bias), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("alpha", [1.0, 0.0, -3.0])
def test_what_stays_below_a_threshold_is_zero(dtype: str, alpha: float) -> None:
    x = np.array([-np.inf, -4, -2, 0, 0.5, 2, np.inf, np.nan], dtype)
    found = results(helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=alpha), x=x)
    np.testing.assert_array_equal(found, np.where(x > alpha, x, 0).astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("uint8", [0, 1, 2, 3, 200, 255]), ("int8", [-5, -2, -1, 0, 2, 5]), ("int32", [-5, -2, -1, 0, 2, 5])],
)
@pytest.mark.parametrize(("bound", "bias"), [(1.0, 1.0), (1.5, 1.5), (0.5, 0.0)])
def test_whole_numbers_shrink_by_real_bounds(
    dtype: str, values: list[int], bound: float, bias: float
) -> None:
    x = np.array(values, dtype)
    wide = x.astype("float64")
    expected = np.where(wide < -bound, wide + bias, np.where(wide > bound, wide - bias, 0)).astype(dtype)
    found = results(helper.make_node("Shrink", ["x"], ["y"], lambd=bound, bias=bias), x=x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fill", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_beyond_those_of_floats_fill(fill: int) -> None:
    node = helper.make_node("Pad", ["x", "pads", "fill"], ["y"])
    constants = {"pads": np.array([0, 1, 1, 0]), "fill": np.array(fill, "int64")}
    x = np.arange(6).reshape(2, 3)
    found = results(node, constants, x=x)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.pad(x, ((0, 1), (1, 0)), constant_values=fill))


@pytest.mark.parametrize("value", [0.1, 3.0])
def test_equal_elements_have_no_deviation(value: float) -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[-2, -1])
    x = np.full((1, 2, 8, 8), value, "float32")
    x[0, 1] = np.random.default_rng(2).standard_normal((8, 8))
    found = results(node, x=x)
    assert np.abs(found[0, 0]).max() < 1e-5
    expected = (x[0, 1] - x[0, 1].mean()) / x[0, 1].std()
    np.testing.assert_allclose(found[0, 1], expected, rtol=1e-4, atol=1e-5)
