"""Arithmetic on named dimensions against onnxruntime: types, signs, counts of operands, rounding."""

from __future__ import annotations

import pytest
from onnx_models import check, model, normal

ROWS = {
    "negated, of its type": ("int32", "c = Cast<to = 6>(s) q = Neg(c) y = Add(q, narrow)"),
    "the largest of three": ("int64", "y = Max(s, k, turned)"),
    "the smallest of one": ("int64", "y = Min(s)"),
    "chosen floats": ("float", "c = Cast<to = 1>(s) y = Where(mask, c, reals)"),
    "divided by less than nothing": ("int64", "q = Sub(s, k) y = Div(s, q)"),
    "a sum over no axes": ("int64", "y = ReduceSum<noop_with_empty_axes = 1>(s, none)"),
    "the product of no axes": ("int64", "y = ReduceProd<noop_with_empty_axes = 1>(s)"),
}


@pytest.mark.parametrize("row", ROWS)
def test_arithmetic_on_a_shape(row: str) -> None:
    kind, nodes = ROWS[row]
    parsed = model(
        f"""agraph (float[n, m] x) => ({kind}[2] y)
        <int64[2] k = {{12, 3}}, int64[2] turned = {{5, 9}}, int32[2] narrow = {{1, 2}}, int64[0] none = {{}},
         bool[2] mask = {{1, 0}}, float[2] reals = {{1.5, 2.5}}> {{
            s = Shape(x)
            {nodes}
        }}"""
    )
    check(parsed, {"x": normal(5, 7)})


@pytest.mark.parametrize("axes", ["int64 axis = {0}", "int64[1] axis = {0}"])
def test_axes_that_are_a_scalar(axes: str) -> None:
    parsed = model(
        f"agraph (float[n, m] x) => (int64[1] y) <{axes}> {{ s = Size(x) y = Unsqueeze(s, axis) }}"
    )
    check(parsed, {"x": normal(5, 7)})


@pytest.mark.parametrize(
    ("rule", "operator", "factor", "size"),
    [
        ("Floor", "Mul", 0.7, 10),
        ("Identity", "Mul", 0.7, 30),
        ("Ceil", "Mul", 0.1, 10),
        ("Ceil", "Mul", 0.3, 50),
        ("Floor", "Mul", 0.1234, 7000),
        ("Floor", "Div", 0.1, 1),
        ("Floor", "Div", 1.1, 11),
    ],
)
def test_a_slice_to_a_size_that_was_rounded(rule: str, operator: str, factor: float, size: int) -> None:
    """Sizes are those of float32, whether or not an expression over the named dimension says them."""
    parsed = model(
        f"""agraph (float[1, n] x) => (int64[1] size, float[1, 3] y)
        <float[1] factor = {{{factor}}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] zero = {{0}}> {{
            s = Shape(x)
            n = Slice(s, one, two)
            f = Cast<to = 1>(n)
            m = {operator}(f, factor)
            r = {rule}(m)
            size = Cast<to = 7>(r)
            y = Slice(x, zero, size, one)
        }}"""
    )
    del parsed.graph.output[1].type.tensor_type.shape.dim[1]
    parsed.graph.output[1].type.tensor_type.shape.dim.add().dim_param = "length"
    check(parsed, {"x": normal(1, size)})
