"""From Relax's types to plain Python: dimensions, shapes, constants, names, slices."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax, tirx

from tvm_mxplan.core.program.dims import Expr, Symbol, evaluate
from tvm_mxplan.passes.relax_types import (
    constant_of,
    dim_of,
    dtype_of,
    is_arithmetic,
    is_constant,
    make_constant,
    operator_name,
    permutation_of,
    scalar_of,
    shape_of,
    slice_begin,
    values_by_function,
    with_operator_name,
)

N, M = tirx.Var("n", "int64"), tirx.Var("m", "int64")


def tensor(*shape: object, dtype: str = "float32") -> relax.Var:
    return relax.Var("x", relax.TensorType(shape, dtype))


@pytest.mark.parametrize(
    ("dim", "value"),
    [
        (N + M, 20),
        (N - M, 14),
        (N * M, 51),
        (tirx.floordiv(N, M), 5),
        (tirx.floormod(N, M), 2),
        (tirx.max(N, M), 17),
        (tirx.min(N, M), 3),
        (N * 2 + 1, 35),
    ],
)
def test_dimensions(dim, value):
    assert evaluate(dim_of(dim), {"n": 17, "m": 3}) == value  # type: ignore[arg-type]


def test_dimensions_that_core_does_not_know():
    assert dim_of(5) == dim_of(tirx.IntImm("int64", 5)) == 5
    assert dim_of(N) == Symbol("n")
    strange = tirx.Select(N > 3, N, M)
    assert dim_of(strange) is None
    assert dim_of(N + strange) is dim_of(strange + N) is None
    assert shape_of(tensor(N, strange)) is None


def test_shapes_and_types():
    assert shape_of(tensor(2, N, N + 1)) == (2, Symbol("n"), Expr("+", Symbol("n"), 1))
    assert shape_of(tensor()) == ()
    assert shape_of(relax.Var("x", relax.TensorType(dtype="float32", ndim=2))) is None
    assert shape_of(relax.Var("s", relax.ShapeType([2, 3]))) is None
    assert shape_of(relax.Var("t", relax.TupleType([]))) is None
    assert (dtype_of(tensor(2, dtype="int8")), dtype_of(relax.Var("t", relax.TupleType([])))) == ("int8", "")


def test_constants():
    array = np.arange(6, dtype="float64").reshape(2, 3)
    made = make_constant(array.T)
    assert is_constant(made) and not is_constant(tensor(2))
    np.testing.assert_array_equal(constant_of(made), array.T)  # type: ignore[arg-type]
    assert (dtype_of(made), constant_of(tensor(2))) == ("float64", None)
    for number in (relax.const(2.5, "float32"), relax.const(np.full((1, 1), 2.5, "float32"))):
        assert scalar_of(number) == 2.5
    assert scalar_of(made) is scalar_of(tensor(1)) is None
    assert scalar_of(relax.const(np.zeros(0, "float32"))) is None


def test_names_travel_with_calls():
    call = relax.op.nn.relu(tensor(2))
    assert operator_name(call) is None
    named = with_operator_name(call, "relu_0")
    assert (operator_name(named), operator_name(call)) == ("relu_0", None)
    assert named.op.same_as(call.op) and named.args[0].same_as(call.args[0])


@pytest.mark.parametrize(
    ("axes", "begins", "ends", "strides", "expected"),
    [
        ([1], [1], [4], None, (0, 1, 0)),
        ([2, 0], [3, 1], [6, 3], None, (1, 0, 3)),
        ([-1], [3], [6], None, (0, 0, 3)),
        ([1], [-2], [5], None, (0, 3, 0)),
        ([1], [2], [99], None, (0, 2, 0)),
        ([1], [0], [-1], None, (0, 0, 0)),
        ([1], [0], [4], [1], (0, 0, 0)),
        ([1], [0], [4], [2], None),
        ([1], [4], [0], [-1], None),
    ],
)
def test_where_slices_begin(axes, begins, ends, strides, expected):
    call = relax.op.strided_slice(tensor(3, 5, 7), axes, begins, ends, strides)
    assert slice_begin(relax.BlockBuilder().normalize(call)) == expected


def test_slices_of_axes_of_unknown_extent():
    builder = relax.BlockBuilder()
    assert slice_begin(builder.normalize(relax.op.strided_slice(tensor(N, 5), [0], [1], [3]))) is None
    assert slice_begin(builder.normalize(relax.op.strided_slice(tensor(N, 5), [1], [1], [3]))) == (0, 1)


def test_bounds_that_are_not_written_out_are_not_known() -> None:
    bounds = relax.Var("bounds", relax.TupleType([]))
    call = relax.Call(tvm.ir.Op.get("relax.strided_slice"), [tensor(4, 5), bounds, bounds, bounds])
    assert slice_begin(call) is None


def test_values_of_each_relax_function_in_the_order_of_their_bindings():
    x = tensor(3)
    builder = relax.BlockBuilder()
    for name in ("one", "two"):
        with builder.function(name, [x]):
            first = builder.emit(relax.op.exp(x))
            second = builder.emit(relax.op.log(first))
            builder.emit_func_output(second)
    mod = builder.get()
    mod["kernel"] = tirx.PrimFunc([], tirx.Evaluate(0))
    found = [[value.op.name for value in values.values()] for values in values_by_function(mod)]
    assert found == [["relax.exp", "relax.log"]] * 2


@pytest.mark.parametrize(
    ("axes", "expected"),
    [(None, [2, 1, 0]), ([0, 1, 2], [0, 1, 2]), ([2, 0, 1], [2, 0, 1]), ([-1, -3, 1], [2, 0, 1])],
)
def test_orders_of_axes(axes, expected):
    call = relax.BlockBuilder().normalize(relax.op.permute_dims(tensor(3, 5, 7), axes))
    assert permutation_of(call) == expected


def test_numbers_of_a_shape_are_no_operators():
    assert is_arithmetic(tirx.if_then_else(N > 3, N, M))
    assert not is_arithmetic(relax.op.nn.relu(tensor(2)))
    assert not is_arithmetic(relax.Call(tvm.ir.GlobalVar("kernel"), [tensor(2)]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16", "int8", "bool"])
def test_constants_of_every_type(dtype):
    numbers = np.array([0.0, 1.0, 1.5]).astype(getattr(ml_dtypes, dtype, dtype))
    made = make_constant(numbers)
    assert dtype_of(made) == dtype
    found = constant_of(made)
    assert found is not None and found.dtype == numbers.dtype
    np.testing.assert_array_equal(found.astype("float32"), numbers.astype("float32"))
    assert scalar_of(make_constant(numbers[2:])) == float(numbers[2])


def test_names_of_others_are_none():
    span = tvm.ir.Span(tvm.ir.SourceName("file.py"), 3, 3, 1, 1)
    call = relax.op.nn.relu(tensor(2))
    assert operator_name(relax.Call(call.op, call.args, call.attrs, call.ty_args, span)) is None
    named = with_operator_name(relax.op.sum(tensor(2, 3), [1], True), "sum_0")
    assert [int(axis) for axis in named.attrs.axis] == [1] and bool(named.attrs.keepdims)
    assert operator_name(with_operator_name(named, "")) == ""


@pytest.mark.parametrize(
    ("begin", "end", "expected"), [(0, 5, (0, 0, 0)), (4, 5, (0, 4, 0)), (-5, -4, (0, 0, 0))]
)
def test_slices_at_the_ends_of_an_axis(begin, end, expected):
    call = relax.op.strided_slice(tensor(3, 5, 7), [1], [begin], [end])
    assert slice_begin(relax.BlockBuilder().normalize(call)) == expected
