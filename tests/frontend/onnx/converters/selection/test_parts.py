"""Parts of tensors, places of elements, and tensors of no elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import helper
from onnx_models import answers, check, model, normal, of_node, operators

import tvm_mxplan

FAR = 2**63 - 1
BOUNDS = [
    (5, 2, 1),
    (2, 5, -1),
    (0, FAR, FAR),
    (-1, -FAR - 1, -FAR),
    (-1, -FAR - 1, -2),
    (100, -100, -3),
    (-100, 100, 3),
    (2, 2, 1),
    (-3, FAR, 1),
]


def _sliced(x: np.ndarray, start: int, end: int, step: int) -> np.ndarray:
    return x[:, range(*slice(start, end, step).indices(x.shape[1]))]


def _slice(x: np.ndarray, bounds: tuple[int, int, int], given: str):
    """A model with some of start, end, axis and step as inputs, and all its inputs."""
    numbers = dict(zip("seat", (np.array([n]) for n in (*bounds[:2], -1, bounds[2])), strict=True))
    inputs = {"x": x} | {name: numbers.pop(name) for name in given}
    return of_node(helper.make_node("Slice", ["x", *"seat"], ["y"]), inputs, numbers), inputs


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("given", ["", "se"])
def test_bounds_of_a_slice(bounds, given):
    """Known, or of the call in part; also such that nothing is between them."""
    x = normal(4, 7)
    (y,) = answers(*_slice(x, bounds, given))
    np.testing.assert_array_equal(y, _sliced(x, *bounds))


def test_bounds_of_a_slice_that_are_all_of_the_call():
    x = normal(4, 7)
    compiled = tvm_mxplan.compile(_slice(x, BOUNDS[0], "seat")[0], "llvm")
    for bounds in BOUNDS:
        (y,) = compiled(**_slice(x, bounds, "seat")[1])
        np.testing.assert_array_equal(y.numpy(), _sliced(x, *bounds))


def test_a_step_larger_than_a_named_dimension():
    parsed = model(
        f"""agraph (float[m, n] x) => (float[m, k] y)
        <int64[1] s = {{0}}, int64[1] e = {{{FAR}}}, int64[1] a = {{1}}, int64[1] t = {{{FAR}}}> {{
            y = Slice(x, s, e, a, t)
        }}"""
    )
    x = normal(3, 5)
    np.testing.assert_array_equal(answers(parsed, {"x": x})[0], x[:, :1])


@pytest.mark.parametrize("number", [0.0, 5.0])
def test_places_in_a_scalar(number):
    """A scalar has no coordinates, unlike in numpy."""
    x = np.array(number, "float32")
    (y,) = answers(of_node(helper.make_node("NonZero", ["x"], ["y"]), {"x": x}), {"x": x})
    assert (y.shape, y.dtype) == ((0, int(number != 0)), np.int64)


@pytest.mark.parametrize("wanted", list(itertools.product([True, False], repeat=3)))
@pytest.mark.parametrize("ordered", [0, 1])
def test_unique_elements_of_a_matrix(wanted, ordered):
    x = np.array([[2.0, 1.0, 1.0], [3.0, 4.0, 3.0]], "float32")
    names = ["y", *(name if is_wanted else "" for name, is_wanted in zip("iuc", wanted, strict=True))]
    node = helper.make_node("Unique", ["x"], names, sorted=ordered)
    check(of_node(node, {"x": x}), {"x": x})


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64"])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_first_none(axis, dtype):
    x = (10 * np.abs(normal(3, 4))).astype(dtype)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=axis)
    y, places = answers(of_node(node, {"x": x}, {"k": np.array([0])}), {"x": x})
    shape = (0, 4) if axis == 0 else (3, 0)
    assert (y.shape, y.dtype, places.shape, places.dtype) == (shape, x.dtype, shape, np.int64)


def test_nothing_to_scatter():
    inputs = {"x": normal(3, 2), "i": np.zeros((0, 1), "int64"), "u": normal(0, 2)}
    check(of_node(helper.make_node("ScatterND", ["x", "i", "u"], ["y"]), inputs), inputs)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("shape", [(2, 0), (0, 3)])
def test_sums_of_nothing(shape, exclusive):
    node = helper.make_node("CumSum", ["x", "a"], ["y"], exclusive=exclusive)
    check(of_node(node, {"x": normal(*shape)}, {"a": np.array(1)}), {"x": normal(*shape)})


@pytest.mark.parametrize(("to", "attributes"), [([3, -1], {}), ([4, 0], {"allowzero": 1}), ([-1, 5], {})])
def test_nothing_in_another_shape(to, attributes):
    node = helper.make_node("Reshape", ["x", "s"], ["y"], **attributes)
    check(of_node(node, {"x": normal(0, 3)}, {"s": np.array(to)}), {"x": normal(0, 3)})


@pytest.mark.parametrize("k", [2**40, -(2**40)])
@pytest.mark.parametrize("upper", [0, 1])
def test_a_diagonal_far_out(upper, k):
    x = normal(3, 4)
    node = helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)
    (y,) = answers(of_node(node, {"x": x}, {"k": np.array(k)}), {"x": x})
    np.testing.assert_array_equal(y, x if (k > 0) != bool(upper) else np.zeros_like(x))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_triangle_is_chosen_by_a_constant(upper, dtype):
    """So that libraries take it, and what is no number does not go through."""
    x = (normal(2, 3, 4) * 9).astype(dtype)
    if dtype == "float32":
        x[:] = np.where(x > 5, np.inf, x)
    node = helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)
    parsed = of_node(node, {"x": x}, {"k": np.array(1)})
    assert operators(parsed) == ["where"]
    (y,) = answers(parsed, {"x": x})
    np.testing.assert_array_equal(y, np.triu(x, 1) if upper else np.tril(x, 1))


@pytest.mark.parametrize("shape", [(1, 3, 2), (4, 3, 2)])
def test_tiles_of_a_named_number(shape):
    """As often as another tensor has rows."""
    parsed = model(
        f"""agraph (float[{", ".join(map(str, shape))}] x, float[n, 7] z) => (float[a, b, c] y)
        <int64[1] two = {{2}}, int64[1] one = {{1}}> {{
            rows = Shape<start = 0, end = 1>(z)
            times = Concat<axis = 0>(rows, one, two)
            y = Tile(x, times)
        }}"""
    )
    assert "call" not in operators(parsed)
    for rows in (1, 3):
        check(parsed, {"x": normal(*shape), "z": normal(rows, 7)})


def test_einstein_sums_over_sizes_written_differently():
    """Padded to blocks of 8: n + 8 - n % 8, and (n // 8 + 1) * 8, which are one size."""
    parsed = model(
        """agraph (float[b, n, 5] x) => (float[b, c, d, e] y)
        <int64[1] none = {0}, int64[1] one = {1}, int64[1] five = {5}, int64[1] eight = {8},
         int64[1] minus = {-1}> {
            rows = Shape<start = 1, end = 2>(x)
            over = Mod(rows, eight)
            more = Sub(eight, over)
            pads = Concat<axis = 0>(none, none, none, none, more, none)
            padded = Pad(x, pads)
            whole = Sub(rows, over)
            blocks = Div(whole, eight)
            count = Add(blocks, one)
            batch = Shape<start = 0, end = 1>(x)
            shape = Concat<axis = 0>(batch, count, eight, five)
            apart = Reshape(padded, shape)
            flat = Concat<axis = 0>(batch, minus, eight, five)
            other = Reshape(padded, flat)
            y = Einsum<equation = "bnik,bnjk->bnij">(apart, other)
        }"""
    )
    assert "einsum" in operators(parsed), "a product for the libraries, not a kernel"
    for rows in (8, 3, 17):
        check(parsed, {"x": normal(2, rows, 5)})
