"""Filters in bfloat16: each number a neighbour of its exact value, and the errors of each sum about 0."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.balanced_rounding import Sums, balanced, sums_of

SHAPES = {
    "convolution": ((64, 32, 3, 3), (1, 2, 3)),
    "first": ((17, 3, 7, 7), (1, 2, 3)),
    "grouped": ((4, 16, 8, 3, 3), (2, 3, 4)),
    "rows": ((300, 67), (0,)),
    "columns": ((67, 300), (1,)),
    "longer than a piece": ((3, 100_003), (1,)),
}


def normal(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def errors(short: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return short.astype("float64") - exact.astype("float64")


@pytest.mark.parametrize(("shape", "axes"), SHAPES.values(), ids=SHAPES)
def test_errors_of_sums_vanish_and_those_of_numbers_hardly_grow(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    exact = normal(shape)
    short, nearest = balanced(exact, Sums(shape, axes)), exact.astype(ml_dtypes.bfloat16)
    assert short.dtype == nearest.dtype and short.shape == shape
    mine, plain = errors(short, exact), errors(nearest, exact)
    assert np.square(mine.sum(axes)).sum() < 0.02 * np.square(plain.sum(axes)).sum()
    assert np.square(mine).sum() < 1.02 * np.square(plain).sum()
    changed = short != nearest
    assert 0 < changed.mean() < 0.1


def test_every_number_is_a_neighbour_of_its_exact_value() -> None:
    exact = normal((32, 9))
    short = balanced(exact, Sums((32, 9), (1,)))
    bits = exact.view(np.uint32)
    ends = [(bits & 0xFFFF0000).view("float32"), ((bits & 0xFFFF0000) + 0x10000).view("float32")]
    wide = short.astype("float32")
    assert ((wide == ends[0]) | (wide == ends[1])).all()
    assert (short != exact.astype(ml_dtypes.bfloat16)).any()


def test_products_with_rectified_inputs_err_less_and_others_not_more() -> None:
    exact = normal((200, 512))
    x = np.random.default_rng(1).standard_normal((512, 1000))
    by = {"balanced": balanced(exact, Sums((200, 512), (1,))), "nearest": exact.astype(ml_dtypes.bfloat16)}
    for inputs, ratio in ((np.maximum(x, 0), 0.9), (x, 1.01)):
        found = {name: np.linalg.norm(errors(short, exact) @ inputs) for name, short in by.items()}
        assert found["balanced"] < ratio * found["nearest"]


@pytest.mark.parametrize(
    "row",
    [
        [1.0, -0.5, 2.0**-100, 3.0],
        [np.inf, 1.001, 1.001, -np.inf],
        [np.nan, 1.001, 1.001, 1.001],
        [3.3895313e38, 1e-45, -1e-45, 0.0],
        [3.39e38, 3.39e38, 3.39e38, 3.39e38],
    ],
    ids=["held", "infinite", "not a number", "ends of the type", "largest"],
)
def test_what_is_held_or_no_number_stays(row: list[float]) -> None:
    exact = np.array([row], "float32")
    with np.errstate(over="ignore"):
        nearest = exact.astype(ml_dtypes.bfloat16).astype("float32")
    found = balanced(exact, Sums((1, 4), (1,))).astype("float32")
    np.testing.assert_array_equal(found, nearest)


def test_nothing_stays_nothing() -> None:
    assert balanced(np.zeros((0, 4), "float32"), Sums((0, 4), (1,))).shape == (0, 4)
    assert balanced(np.zeros((4, 0), "float32"), Sums((4, 0), (1,))).shape == (4, 0)


# --- which constants, along which axes ----------------------------------------------------------------------

CONVOLUTION = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
GROUPED = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 4)


def program(
    attrs: object, shape: tuple[int, ...], layout: str, view: tuple[tuple[int, ...], str] | None = None
) -> ir.Program:
    """A step that reads a constant, by a view of another shape and layout where one is given."""
    values = [
        ir.Value("x", (2, 2), "float32", "input", "ab", 0),
        ir.Value("y", (2, 2), "float32", "output", "ab", 0),
        ir.Value("w", shape, "float32", "constant", layout, 7),
    ]
    if view is not None:
        values.append(ir.Value("v", view[0], "float32", "local", view[1], alias_of=2))
    operands = (ir.Operand("src", 0), ir.Operand("weights", len(values) - 1), ir.Operand("dst", 1))
    return ir.Program("p", tuple(values), (ir.Step("s", attrs, operands),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attrs", "shape", "layout", "view", "expected"),
    [
        (CONVOLUTION, (8, 3, 5, 5), "abcd", None, Sums((8, 3, 5, 5), (1, 2, 3))),
        (GROUPED, (4, 2, 3, 5, 5), "abcde", None, Sums((4, 2, 3, 5, 5), (2, 3, 4))),
        (ir.MatMul(), (6, 7), "ab", None, Sums((6, 7), (0,))),
        (ir.MatMul(), (7, 6), "ab", ((6, 7), "ba"), Sums((7, 6), (1,))),
        (ir.MatMul(), (6, 7), "ab", ((1, 6, 7), "abc"), Sums((1, 6, 7), (1,))),
        (ir.InnerProduct(), (7, 6), "ab", ((7, 1, 6), "abc"), Sums((7, 1, 6), (1, 2))),
        (ir.MatMul(), (12, 7), "ab", ((6, 7), "ab"), None),
        (ir.MatMul(), (16, 7), "Ab16a", None, None),
        (ir.Binary("add"), (2, 2), "ab", None, None),
    ],
    ids=str,
)
def test_axes_that_products_sum_over(
    attrs: object,
    shape: tuple[int, ...],
    layout: str,
    view: tuple[tuple[int, ...], str] | None,
    expected: Sums | None,
) -> None:
    assert sums_of(program(attrs, shape, layout, view)).get(7) == expected


def test_a_constant_that_is_read_in_two_ways_has_no_sums() -> None:
    one = program(ir.MatMul(), (6, 6), "ab", ((6, 6), "ba"))
    other = ir.Step("t", ir.MatMul(), (ir.Operand("src", 0), ir.Operand("weights", 2), ir.Operand("dst", 1)))
    assert sums_of(one) and not sums_of(ir.Program("p", one.values, (*one.steps, other)))
