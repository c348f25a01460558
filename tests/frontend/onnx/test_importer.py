"""Importing ONNX graphs: what is known is evaluated, and nothing is left that only computes a shape."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import check, model, normal, operators

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

SHAPES_IN_GRAPH = """
    agraph (float[b, t, 12] x) => (float[b, h, t, d] y)
    <int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[2] heads = {3, 4}> {
        s = Shape(x)
        b = Gather<axis = 0>(s, zero)
        t = Gather<axis = 0>(s, one)
        b1 = Unsqueeze(b, axis)
        t1 = Unsqueeze(t, axis)
        to = Concat<axis = 0>(b1, t1, heads)
        r = Reshape(x, to)
        y = Transpose<perm = [0, 2, 1, 3]>(r)
    }"""


def test_shape_arithmetic_over_named_dimensions_leaves_no_operators():
    parsed = model(SHAPES_IN_GRAPH)
    assert operators(parsed) == ["reshape", "permute_dims"]
    for b, t in ((2, 5), (1, 1), (3, 7)):
        check(parsed, {"x": normal(b, t, 12)})


def test_a_factor_that_is_left_open_is_found():
    parsed = model(
        """agraph (float[b, t, 12] x) => (float[r, c] y)
        <int64[1] open = {-1}, int64[1] at = {0}, int64[1] to = {1}> {
            s = Shape(x)
            b = Slice(s, at, to)
            both = Concat<axis = 0>(b, open)
            y = Reshape(x, both)
        }"""
    )
    assert operators(parsed) == ["reshape"]
    check(parsed, {"x": normal(3, 5, 12)})


def test_a_mask_from_ranges_and_comparisons_of_dimensions():
    """The old exporter's Expand: shapes of -1 and 1 chosen by Where."""
    parsed = model(
        """agraph (float[1, t] x, float[b] batch) => (float[b, t] y) <int64[1] minus = {-1}> {
            b = Shape(batch)
            to = Concat<axis = 0>(b, minus)
            ones_shape = Shape(to)
            ones = ConstantOfShape<value = int64[1] {1}>(ones_shape)
            wanted = Mul(ones, minus)
            open = Equal(to, wanted)
            chosen = Where(open, ones, to)
            y = Expand(x, chosen)
        }"""
    )
    assert operators(parsed) == ["broadcast_to"]
    check(parsed, {"x": normal(1, 4), "batch": normal(3)})


def test_constants_are_folded_through_any_operator():
    """Standardised weights, as in NFNet: none of it is left to run."""
    parsed = model(
        """agraph (float[1, 3, 8, 8] x) => (float[1, 6, 8, 8] y)
        <float[6, 3, 3, 3] w = {WEIGHTS}, int64[3] axes = {1, 2, 3}> {
            m = ReduceMean<keepdims = 1>(w, axes)
            d = Sub(w, m)
            q = Mul(d, d)
            v = ReduceMean<keepdims = 1>(q, axes)
            s = Sqrt(v)
            n = Div(d, s)
            y = Conv<pads = [1, 1, 1, 1]>(x, n)
        }""".replace("WEIGHTS", ", ".join(map(str, normal(6, 3, 3, 3).ravel())))
    )
    assert operators(parsed) == ["nn.conv2d"]
    check(parsed, {"x": normal(1, 3, 8, 8)})


def test_slices_stop_at_the_ends_that_a_call_has():
    """A table of 6 positions cut to a length that the call tells, and a length past the end."""
    parsed = model(
        """agraph (float[1, 6, 2] table, float[1, t] x) => (float[1, n, 2] y)
        <int64[1] start = {0}, int64[1] axis = {1}, int64 one = {1}, int64[1] first = {0}> {
            s = Shape(x)
            t = Gather<axis = 0>(s, one)
            end = Unsqueeze(t, first)
            y = Slice(table, start, end, axis)
        }"""
    )
    for length in (1, 4, 6, 9):
        check(parsed, {"table": normal(1, 6, 2), "x": normal(1, length)})


@pytest.mark.parametrize("shape", [(2, 12), (4, -1), (0, -1), (-1, 2, 3)])
def test_a_shape_that_an_input_brings(shape):
    parsed = model(
        "agraph (float[4, 6] x, int64[N] s) => (float[R] y) { y = Reshape(x, s) }".replace(
            "N", str(len(shape))
        ).replace("[R]", f"[{','.join('abc'[: len(shape)])}]")
    )
    check(parsed, {"x": normal(4, 6), "s": np.array(shape, "int64")})


def test_a_function_of_the_model_and_one_of_the_standard():
    parsed = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18, "mine": 1]>
        agraph (float[3, 4] x) => (float[3, 4] y) { t = mine.twice<a = 2.5>(x)  y = Celu<alpha = 0.5>(t) }
        <domain: "mine", opset_import: ["": 18]> twice <a>(x) => (y) {
            c = Constant<value_float: float = @a>()
            y = Mul(x, c)
        }"""
    )
    check(parsed, {"x": normal(3, 4)})


def test_errors_name_the_node_and_the_operator():
    parsed = model("agraph (float[2] x) => (float[2] y) { y = Relu(x) }")
    parsed.graph.node[0].op_type = "Frobnicate"
    parsed.graph.node[0].name = "odd one"
    with pytest.raises(UnsupportedError, match=r"node 'odd one' \(Frobnicate\)"):
        tvm_mxplan.compile(parsed)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["gone"], ["y"], name="reader")],
        "g",
        [],
        [helper.make_tensor_value_info("y", 1, [2])],
    )
    with pytest.raises(InvalidInputError, match=r"node 'reader' \(Relu\): reads 'gone'"):
        tvm_mxplan.compile(helper.make_model(graph))
