"""Normalizations with scales and shifts that broadcast, windows of any size, and narrow and wide types."""

from __future__ import annotations

import pytest
from onnx_models import check, model, normal, operators

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
        "agraph (float[2, n] x, float[4] s, float[4] b) => (float[2, n] y) { y = LayerNormalization(x, s, b) }"
    )
    assert "nn.layer_norm" in operators(parsed)
    check(parsed, {"x": normal(2, 4), "s": normal(4), "b": normal(4)})
