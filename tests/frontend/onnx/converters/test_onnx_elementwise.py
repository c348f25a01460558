"""Elementwise operators of types and attributes that TVM's converters get wrong."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from onnx_models import answers, model, normal, of_node


@pytest.mark.parametrize("alpha", [-1.0, -0.5, 0.75])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_celu(alpha, dtype):
    x = normal(5, 7).astype(dtype)
    wide = x.astype("float64")
    expected = np.maximum(wide, 0) + np.minimum(alpha * np.expm1(wide / alpha), 0)
    node = helper.make_node("Celu", ["x"], ["y"], alpha=alpha)
    (y,) = answers(of_node(node, {"x": x}), {"x": x})
    assert y.dtype == x.dtype
    tolerance = 1e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "float32"])
def test_sign(dtype):
    x = np.array([0, 1, 2, 100], dtype)
    (y,) = answers(of_node(helper.make_node("Sign", ["x"], ["y"]), {"x": x}), {"x": x})
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, [0, 1, 1, 1])


@pytest.mark.parametrize("of", ["float", "double"])
def test_numbers_cast_to_bfloat16_and_back_are_rounded(of):
    parsed = model(f"agraph ({of}[n] x) => (float[n] y) {{ q = Cast<to = 16>(x)  y = Cast<to = 1>(q) }}")
    x = np.array([1 + 2**-8, 1 + 3 * 2**-8, -3.1, 3.4e38, np.inf, -np.inf, np.nan, 0.0], "float32")
    (y,) = answers(parsed, {"x": x.astype("float64" if of == "double" else "float32")})
    np.testing.assert_array_equal(y, x.astype(ml_dtypes.bfloat16).astype("float32"))
