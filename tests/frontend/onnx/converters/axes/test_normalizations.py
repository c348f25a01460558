"""Normalizations with scales and shifts that broadcast, windows of any size, and narrow and wide types."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import answers, check, model, normal, of_node, operators

SHAPES = ["1", "4", "1, 4", "3, 1", "1, 1", "3, 4"]


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("scale", SHAPES)
@pytest.mark.parametrize(("operator", "opset"), [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_a_scale_that_broadcasts(operator, opset, scale, axis):
    parsed = model(
        f"""agraph (float[2, 3, 4] x, float[{scale}] s) => (float[2, 3, 4] y) {{
            y = {operator}<axis = {axis}>(x, s)
        }}""",
        opset,
    )
    check(parsed, {"x": normal(2, 3, 4), "s": normal(*map(int, scale.split(",")))})


@pytest.mark.parametrize("shift", SHAPES)
def test_a_shift_that_broadcasts(shift):
    parsed = model(
        f"""agraph (float[2, n, 4] x, float[4] s, float[{shift}] b) => (float[2, n, 4] y) {{
            y = LayerNormalization(x, s, b)
        }}"""
    )
    check(parsed, {"x": normal(2, 3, 4), "s": normal(4), "b": normal(*map(int, shift.split(",")))})


def test_layer_normalization_of_float64():
    parsed = model(
        "agraph (double[2, 3, 4] x, double[4] s, double[4] b) => (double[2, 3, 4] y) "
        "{ y = LayerNormalization(x, s, b) }"
    )
    check(parsed, {name: normal(*shape).astype("float64") for name, shape in _LAYER.items()})


_LAYER = {"x": (2, 3, 4), "s": (4,), "b": (4,)}


def test_a_row_with_a_number_stays_one_operator_though_the_extent_has_a_name():
    parsed = model(
        "agraph (float[2, n] x, float[4] s, float[4] b) => (float[2, n] y) "
        "{ y = LayerNormalization(x, s, b) }"
    )
    assert "nn.layer_norm" in operators(parsed)
    check(parsed, {"x": normal(2, 4), "s": normal(4), "b": normal(4)})


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((2, 5), "float64"), ((1, 5, 3, 4), "float32"), ((1, 5, 3, 2, 2), "float16")]
)
def test_neighbouring_channels(size, shape, dtype):
    """A window of an even size reaches one channel farther forwards."""
    x = normal(*shape).astype(dtype)
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.7, beta=0.6, bias=1.3)
    wide = x.astype("float64")
    before, after = (size - 1) // 2, size // 2
    padded = np.pad(wide**2, [(0, 0), (before, after)] + [(0, 0)] * (len(shape) - 2))
    total = sum(padded[:, at : at + 5] for at in range(size))
    (y,) = answers(of_node(node, {"x": x}), {"x": x})
    assert y.dtype == x.dtype
    tolerance = 2e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(y, wide / (1.3 + 0.7 / size * total) ** 0.6, rtol=tolerance)


@pytest.mark.parametrize(("opset", "stash"), [(18, None), (21, onnx.TensorProto.DOUBLE)])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 3, 4)])
def test_groups(opset, stash, dtype, shape):
    x = normal(*shape).astype(dtype)
    rows = 3 if opset < 21 else 6
    scale, shift = (normal(rows).astype(dtype) for _ in range(2))
    attributes = {} if stash is None else {"stash_type": stash}
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3, **attributes)
    parts = x.astype("float64").reshape(2, 3, -1)
    centred = parts - parts.mean(2, keepdims=True)
    usual = (centred / np.sqrt(parts.var(2, keepdims=True) + 1e-5)).reshape(shape)
    row = (-1, *[1] * (len(shape) - 2))
    wide = [np.repeat(one.astype("float64"), 6 // rows).reshape(row) for one in (scale, shift)]
    (y,) = answers(of_node(node, {"x": x}, {"s": scale, "b": shift}, opset), {"x": x})
    assert y.dtype == x.dtype
    tolerance = 1e-2 if dtype == "float16" else 1e-12
    np.testing.assert_allclose(y, usual * wide[0] + wide[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_batch_of_numbers(dtype):
    """One axis: the batch, of one channel."""
    x = normal(5).astype(dtype)
    row = {name: np.abs(normal(1)).astype(dtype) for name in ("s", "b", "m", "v")}
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    expected = (x - row["m"]) / np.sqrt(row["v"] + np.float32(1e-5)) * row["s"] + row["b"]
    (y,) = answers(of_node(node, {"x": x}, row), {"x": x})
    assert y.dtype == x.dtype
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
