"""Exact outputs of models, which commands hold engines against."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _shared.exact import exact_outputs


def test_outputs_are_exact_to_float64() -> None:
    random = np.random.default_rng(0)
    w, x = (random.standard_normal(shape).astype("float32") for shape in ((7, 5), (3, 7)))
    at = np.array([[4, 0, 0, 2, 1, 3]])
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        g (float[3, 7] x, int64[1, 6] at) => (float[1, 6] y) {
            half = Cast<to = 1>(at)
            moved = Add(x, bias)
            sums = MatMul(moved, w)
            one = Slice(sums, zero, first, zero)
            rows = GatherElements<axis = 1>(one, at)
            y = Add(rows, half)
        }"""
    )
    bias = np.float32(0.1)
    constants = {"w": w, "bias": bias, "zero": np.array([0]), "first": np.array([1])}
    for name, array in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    (got,) = exact_outputs(model, {"x": x, "at": at})
    sums = (x[:1].astype("float64") + float(bias)) @ w.astype("float64")
    np.testing.assert_allclose(got, np.take_along_axis(sums, at, 1) + at, rtol=1e-14)
    assert got.dtype == "float64"
    assert all(t.data_type != onnx.TensorProto.DOUBLE for t in model.graph.initializer), "left as it was"


def test_outputs_that_are_not_in_float64_are_said() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        g (float[3] x) => (float16[3] y) { y = Cast<to = 10>(x) }"""
    )
    with pytest.raises(ValueError, match="expected outputs of float64, got float16"):
        exact_outputs(model, {"x": np.ones(3, "float32")})
