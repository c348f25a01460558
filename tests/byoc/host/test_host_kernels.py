"""The host library's kernels alone, against numpy: odd shapes, broadcasts, layouts, threads, zero extents."""

from __future__ import annotations

import numpy as np
import pytest
from host_steps import SPECIAL, drawn, one_step, ran

from tvm_mxplan.byoc import registry
from tvm_mxplan.core.program import program as ir

BROADCASTS = [
    ((3, 17, 5), (3, 17, 5), (3, 17, 5)),
    ((3, 17, 5), (1, 17, 1), (3, 1, 1)),
    ((7, 1, 301), (1, 67, 1), (7, 67, 301)),
    ((1, 1), (1, 1), (40000, 3)),
    ((), (), ()),
    ((0, 3), (1, 3), (0, 3)),
    ((1,), (70001,), (70001,)),
]


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "int16"])
@pytest.mark.parametrize("shapes", BROADCASTS)
def test_select(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    condition, yes, no = drawn(shapes[0], "bool"), drawn(shapes[1], dtype), drawn(shapes[2], dtype)
    expected = np.where(condition, yes, no)
    operands = [("condition", condition), ("src", yes), ("src1", no)]
    assert np.array_equal(ran(ir.Select(), operands, expected.shape, dtype), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_compare(name: str, dtype: str) -> None:
    for left, right, _ in BROADCASTS:
        a, b = np.round(drawn(left)).astype(dtype), np.round(drawn(right)).astype(dtype)
        expected = getattr(np, name)(a, b)
        found = ran(ir.Compare(name), [("src", a), ("src1", b)], expected.shape, "bool")
        assert np.array_equal(found, expected)


def test_compare_of_what_is_no_number() -> None:
    a, b = SPECIAL[:, None] + np.zeros(10, "f"), np.broadcast_to(SPECIAL, (10, 10)).copy()
    for name in ("equal", "not_equal", "less", "greater_equal"):
        found = ran(ir.Compare(name), [("src", a), ("src1", b)], (10, 10), "bool")
        assert np.array_equal(found, getattr(np, name)(a, b))


@pytest.mark.parametrize("source", ["float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_cast(source: str) -> None:
    for target in ("float32", "float64", "int8", "uint8", "int32", "int64", "bool"):
        for shape in ((40001,), (), (0, 2)):
            a = np.abs(drawn(shape)).astype(source)
            assert np.array_equal(ran(ir.Cast(), [("src", a)], shape, target), a.astype(target))


def test_cast_of_what_no_integer_is() -> None:
    a = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 2.0**31, -(2.0**31), 2.9, -2.9], "float32")
    smallest = np.iinfo("int32").min
    expected = [smallest] * 6 + [smallest, 2, -2]
    assert ran(ir.Cast(), [("src", a)], a.shape, "int32").tolist() == expected
    assert ran(ir.Cast(), [("src", a)], a.shape, "bool").tolist() == [True] * 9


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "min", "max"])
def test_binary(name: str, dtype: str) -> None:
    """Quotients of integers are rounded down; by 0 they are 0, as numpy has it."""
    by_name = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "min": "minimum"}
    if dtype != "float32":
        by_name["div"] = "floor_divide"
    for left, right, _ in BROADCASTS:
        a, b = drawn(left, dtype), drawn(right, dtype)
        with np.errstate(all="ignore"):
            expected = getattr(np, by_name.get(name, "maximum"))(a, b)
        found = ran(ir.Binary(name), [("src", a), ("src1", b)], expected.shape, dtype)
        np.testing.assert_array_equal(found, expected)


def test_integers_wrap_around() -> None:
    a = np.array([np.iinfo("int64").max, np.iinfo("int64").min], "int64")
    found = ran(ir.Binary("add"), [("src", a), ("src1", a)], (2,), "int64")
    with np.errstate(over="ignore"):
        assert np.array_equal(found, a + a)


def test_the_larger_of_what_is_no_number_is_none() -> None:
    a, b = np.array([np.nan, 1, 2], "f"), np.array([1, np.nan, 3], "f")
    for name, expected in (("max", [np.nan, np.nan, 3]), ("min", [np.nan, np.nan, 2])):
        np.testing.assert_array_equal(ran(ir.Binary(name), [("src", a), ("src1", b)], (3,)), expected)


SLICES = [
    ((17, 5, 301), (slice(None, None, 2), slice(None), slice(300, None, -3))),
    ((3, 90000), (slice(None), slice(1, None, 2))),
    ((90001,), (slice(None, None, -1),)),
    ((5, 7), (slice(4, 4, 1), slice(None))),
    ((5, 7), (slice(-1, 0, -4), slice(6, 1, -5))),
    ((2, 3, 40, 50), (slice(None), slice(None), slice(0, 40, 2), slice(1, 50, 3))),
]


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "int16"])
@pytest.mark.parametrize("shape, box", SLICES)
def test_slices_with_steps(shape: tuple[int, ...], box: tuple[slice, ...], dtype: str) -> None:
    data = drawn(shape, dtype)
    ranges = [range(*part.indices(extent)) for part, extent in zip(box, shape, strict=True)]
    begin = tuple(taken.start if len(taken) else 0 for taken in ranges)
    attrs = ir.StridedSlice(begin, tuple(taken.step for taken in ranges))
    expected = data[box]
    assert np.array_equal(ran(attrs, [("src", data)], expected.shape, dtype), expected)


SHORT_ROWS = [
    # shapes of two operands; rows are repeated, taken for all, or neither
    ((3, 640, 14), (1, 1, 14)), ((64, 300, 7), (64, 1, 7)), ((2, 900, 5), (2, 900, 1)),
    ((500, 3, 11), (500, 1, 11)), ((1, 1, 129), (7, 33, 129)), ((40, 1, 9), (1, 50, 9)),
]  # fmt: skip


@pytest.mark.parametrize("left, right", SHORT_ROWS)
def test_short_rows(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = drawn(left), drawn(right)
    expected = a * b
    found = ran(ir.Binary("mul"), [("src", a), ("src1", b)], expected.shape)
    np.testing.assert_array_equal(found, expected)
    found = ran(ir.Compare("less"), [("src", b), ("src1", a)], expected.shape, "bool")
    np.testing.assert_array_equal(found, b < a)
    condition = drawn(right, "bool")
    operands = [("condition", condition), ("src", a), ("src1", b)]
    np.testing.assert_array_equal(ran(ir.Select(), operands, expected.shape), np.where(condition, a, b))


def test_truth_values() -> None:
    for left, right, _ in BROADCASTS:
        a, b = drawn(left, "bool"), drawn(right, "bool")
        for name, function in (("min", np.logical_and), ("max", np.logical_or)):
            expected = function(a, b)
            found = ran(ir.Binary(name), [("src", a), ("src1", b)], expected.shape, "bool")
            assert np.array_equal(found, expected)


REDUCED = [
    ((5, 49, 67), (1,)), ((2, 7, 9, 33), (1, 2)), ((3, 1000, 3), (1,)), ((4, 300), (1,)), ((301, 5), (0,)),
    ((6, 5, 4, 3), (0, 2)), ((2, 3, 4, 130), (1, 3)), ((17,), (0,)), ((3, 1, 5), (1,)),
    ((2, 600, 2, 3), (1, 2, 3)), ((9, 700), (0,)), ((1, 20000), (1,)),
]  # fmt: skip


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "mul"])
@pytest.mark.parametrize("shape, axes", REDUCED)
def test_reductions_over_any_axes(shape: tuple[int, ...], axes: tuple[int, ...], name: str) -> None:
    data = drawn(shape)
    if name == "mul":
        data = np.where(data > 0, np.float32(1.25), np.float32(-0.8))
    function = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "mul": np.prod}[name]
    expected = function(data.astype("f8"), axis=axes, keepdims=True)
    found = ran(ir.Reduction(name), [("src", data)], expected.shape)
    size = np.abs(data.astype("f8")).sum(axis=axes, keepdims=True).max()
    terms = data.size // expected.size
    if name in ("max", "min"):
        np.testing.assert_array_equal(found, expected)
    elif name == "mul":
        np.testing.assert_allclose(found, expected, rtol=terms * 2.0**-24)  # each factor rounds once
    else:
        np.testing.assert_allclose(found, expected, atol=3e-6 * size / (terms if name == "mean" else 1))


def test_reductions_in_another_order() -> None:
    data = drawn((2, 19, 7, 5))
    found = ran(ir.Reduction("mean"), [("src", data)], (2, 19, 1, 1), layouts=["acdb", "acdb"])
    np.testing.assert_allclose(found, data.mean((2, 3), keepdims=True), atol=1e-6)


def test_long_sums_round_little() -> None:
    ones = np.full((1 << 20, 3), 0.1, "float32")
    found = ran(ir.Reduction("sum"), [("src", ones)], (1, 3))
    np.testing.assert_allclose(found, ones.astype("f8").sum(0, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("count", [3, 4, 5, 23, 24, 31, 32, 33, 47, 64, 65, 100, 129])
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_outermost_of_rows_wherever_it_stands(name: str, count: int) -> None:
    """One row for each place of it, then infinities, and a row for each place of what is no number."""
    sign = 1 if name == "max" else -1
    data = drawn((2 * count + 2, count))
    places = np.arange(count)
    data[places, places] = 100 * sign
    data[count], data[count + 1] = -np.inf, np.inf
    data[count + 2 + places, places] = np.nan
    with np.errstate(invalid="ignore"):
        expected = (np.max if name == "max" else np.min)(data, axis=1, keepdims=True)
    assert (expected[:count] == 100 * sign).all() and np.isnan(expected[count + 2 :]).all()
    np.testing.assert_array_equal(ran(ir.Reduction(name), [("src", data)], (len(data), 1)), expected)


def test_the_largest_of_what_is_no_number_is_none() -> None:
    for shape, axes in (((3, 200), (1,)), ((200, 3), (0,))):
        data = drawn(shape)
        data[1, 1] = np.nan
        for name, function in (("max", np.max), ("min", np.min)):
            expected = function(data, axis=axes, keepdims=True)
            np.testing.assert_array_equal(ran(ir.Reduction(name), [("src", data)], expected.shape), expected)


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "int16"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concat(axis: int, dtype: str) -> None:
    extents = (3, 0, 70, 1)
    pieces = [drawn(tuple(one if at == axis else 5 for at in range(3)), dtype) for one in extents]
    expected = np.concatenate(pieces, axis)
    values = [ir.Value(f"p{at}", one.shape, dtype, "input", "abc", at) for at, one in enumerate(pieces)]
    values.append(ir.Value("dst", expected.shape, dtype, "output", "abc", 0))
    operands = (*(ir.Operand("src", at) for at in range(4)), ir.Operand("dst", 4))
    program = ir.Program("p", tuple(values), (ir.Step("s", ir.Concat(axis), operands, library=""),))
    backend = registry.planner("host")
    assert backend.describe(program).steps[0].implementation.startswith("host:")
    found = np.ones(expected.shape, dtype)
    backend.trial(program, [])(*pieces, found)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "int16"])
@pytest.mark.parametrize(
    "source, steps", [((1, 17, 1), (0, 1, 0)), ((3, 1, 200), (1, 0, 1)), ((1, 1, 1), (0, 0, 0))]
)
def test_a_step_of_none_takes_one_element_again(
    source: tuple[int, ...], steps: tuple[int, ...], dtype: str
) -> None:
    shape = tuple(one if step else 23 for one, step in zip(source, steps, strict=True))
    data = drawn(source, dtype)
    found = ran(ir.StridedSlice((0,) * 3, steps), [("src", data)], shape, dtype)
    assert np.array_equal(found, np.broadcast_to(data, shape))


LAYOUTS = ["abcd", "acdb", "dcba", "bacd", "aBcd8b", "aBcd5b", "ABcd3a4b", "aBcd4b2b", "abCd7c"]


@pytest.mark.parametrize(
    "shape, dtype", [((2, 17, 9, 13), "float32"), ((5, 3, 1, 67), "bool"), ((3, 0, 2, 1), "int64")]
)
@pytest.mark.parametrize("source", LAYOUTS)
def test_reorders_between_any_layouts(source: str, shape: tuple[int, ...], dtype: str) -> None:
    data = drawn(shape, dtype)
    for target in LAYOUTS:
        found = ran(ir.Reorder(), [("src", data)], shape, dtype, [source, target])
        assert np.array_equal(found, data)


def test_large_transposes() -> None:
    for dtype in ("float32", "int16", "bool", "int64"):
        data = drawn((3, 211, 517), dtype)
        for layout in ("acb", "cba", "bac", "bca"):
            assert np.array_equal(
                ran(ir.Reorder(), [("src", data)], data.shape, dtype, [layout, "abc"]), data
            )


@pytest.mark.parametrize("layout", ["acdb", "aBcd8b", "aBcd5b"])
def test_choices_keep_a_layout_that_all_share(layout: str) -> None:
    shape = (2, 19, 7, 5)
    condition, yes, no = drawn(shape, "bool"), drawn(shape), drawn(shape)
    operands = [("condition", condition), ("src", yes), ("src1", no)]
    found = ran(ir.Select(), operands, shape, layouts=[layout] * 4)
    assert np.array_equal(found, np.where(condition, yes, no))
    found = ran(ir.Compare("less"), [("src", yes), ("src1", no)], shape, "bool", [layout] * 3)
    assert np.array_equal(found, yes < no)


def test_padding_that_would_not_stay_zero_is_refused() -> None:
    shape = (2, 19, 7, 5)
    for attrs, reason in ((ir.Compare("equal"), "blocks"), (ir.Eltwise("exp", 0.0, 0.0), "blocks")):
        operands = [("src", drawn(shape))]
        if isinstance(attrs, ir.Compare):
            operands.append(("src1", drawn(shape)))
        dtype = "bool" if isinstance(attrs, ir.Compare) else "float32"
        program = one_step(attrs, operands, shape, dtype, ["aBcd8b"] * (len(operands) + 1))
        assert reason in registry.planner("host").describe(program).steps[0].error
