"""FoldConstants: what importers wrap around parameters is gone, what a library does itself stays."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
import tvm
from dataflow_text import assert_becomes, assert_unchanged, constants, dataflow
from tvm import relax

from tvm_mxplan.passes.canonicalize import FoldConstants

VECTOR = 'R.const([1.0, 2.0, 3.0], "float32")'


def test_reshaped_bias():
    assert_becomes(
        FoldConstants(),
        f"""
        b = R.reshape({VECTOR}, (1, 3, 1, 1))
        y = R.add(x, b)
        """,
        """
        y = R.add(x, R.const([[[[1.0]], [[2.0]], [[3.0]]]], "float32"))
        """,
    )


def test_chain_of_operators():
    assert_becomes(
        FoldConstants(),
        f"""
        a = R.sqrt(R.const([4.0, 9.0, 16.0], "float32"))
        b = R.divide({VECTOR}, a)
        c = R.expand_dims(R.negative(b), [1, 2])
        y = R.multiply(x, c)
        """,
        """
        y = R.multiply(x, R.const([[[-0.5]], [[-0.6666667]], [[-0.75]]], "float32"))
        """,
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('R.permute_dims(R.const([[[1.0, 2.0]]], "float32"), [2, 0, 1])', [[[1.0]], [[2.0]]]),
        ('R.squeeze(R.const([[[4.0]]], "float32"), [0, 2])', [4.0]),
        ('R.subtract(R.const(3.0, "float32"), R.const(1.0, "float32"))', 2.0),
        ('R.rsqrt(R.const([4.0], "float32"))', [0.5]),
        ('R.zeros_like(R.const([4.0], "float32"))', [0.0]),
        ('R.astype(R.const([4, 5], "int64"), "float32")', [4.0, 5.0]),
        ('R.where(R.isnan(R.const(1.0, "float32")), R.const(2.0, "float32"), R.const(3.0, "float32"))', 3.0),
    ],
)
def test_operator(expression, expected):
    parameters = 'x: R.Tensor((2, 2, 2, 2), "float32")'
    mod = FoldConstants()(dataflow(f"c = {expression}\ny = R.add(x, c)", parameters=parameters))
    (folded,) = constants(mod)
    assert np.array_equal(folded, np.array(expected, "float32"))
    assert folded.dtype == np.float32


def test_element_type_is_the_operators():
    """64 bits stay 64 bits: ``relax.const`` by itself would make 32 of them."""
    lines = 'c = R.astype(R.add(R.const([1, 2], "int32"), R.const(3, "int32")), "int64")\ny = R.add(x, c)'
    mod = FoldConstants()(dataflow(lines, parameters='x: R.Tensor((2,), "int64")'))
    (folded,) = constants(mod)
    assert folded.tolist() == [4, 5]
    assert folded.dtype == np.int64


def test_broadcast_to_a_larger_shape_stays():
    lines = f"c = R.broadcast_to({VECTOR}, (4, 3))\ny = R.matmul(x, R.permute_dims(c))"
    assert_unchanged(FoldConstants(), lines, parameters='x: R.Tensor((5, 3), "float32")')


@pytest.mark.parametrize(
    ("shape", "result", "folds"),
    [
        ((3,), (1, 3), True),
        ((1, 3), (1, 1, 3), True),
        ((1, 3), (2, 3), False),
        ((2, 1), (2, 2), False),
        ((2, 1), (1, 2, 1), True),
    ],
)
def test_broadcast_is_folded_where_it_repeats_nothing(shape, result, folds):
    array = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    mod = FoldConstants()(_folding(lambda c, _: relax.op.broadcast_to(c, result), array, array))
    (found,) = constants(mod)
    assert found.shape == (result if folds else shape)


def test_broadcast_that_is_seen_in_another_shape_is_folded():
    """Group norm of opset 18: a factor for each group, repeated for its channels."""
    assert_becomes(
        FoldConstants(),
        """
        a = R.reshape(R.const([1.0, 2.0], "float32"), (2, 1))
        b = R.broadcast_to(a, (2, 2))
        c = R.reshape(b, (4, 1, 1))
        y = R.multiply(x, c)
        """,
        """
        y = R.multiply(x, R.const([[[1.0]], [[1.0]], [[2.0]], [[2.0]]], "float32"))
        """,
        parameters='x: R.Tensor((2, 4, 3, 3), "float32")',
    )


def test_matrix_transpose_stays():
    """A library reads it as it stands."""
    assert_unchanged(
        FoldConstants(),
        'w = R.permute_dims(R.const([[1.0, 2.0]], "float32"))\ny = R.matmul(x, w)',
        parameters='x: R.Tensor((5, 2), "float32")',
    )


@pytest.mark.parametrize(
    "lines",
    [
        "y = R.add(x, x)",
        f"y = R.add(x, {VECTOR})",
        f"a = R.exp({VECTOR})\ny = R.add(x, a)",
        "a = R.reshape(x, (6, 4))\ny = R.permute_dims(a)",
    ],
)
def test_ir_unchanged(lines):
    assert_unchanged(FoldConstants(), lines, parameters='x: R.Tensor((2, 4, 3), "float32")')


def test_shared_constant_is_not_changed_in_place():
    lines = f"c = {VECTOR}\na = R.negative(c)\ny = R.add(R.add(x, c), a)"
    mod = dataflow(lines, parameters='x: R.Tensor((2, 3), "float32")')
    folded = FoldConstants()(mod)
    assert sorted(array.tolist() for array in constants(folded)) == [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]
    tvm.ir.assert_structural_equal(FoldConstants()(mod), folded)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16", "float64", "uint8"])
def test_constants_of_every_type_are_cast(dtype):
    numbers = np.array([0.0, 1.0, 2.0, 3.0])
    constant = relax.const(numbers.astype(getattr(ml_dtypes, dtype, dtype)), dtype)
    x = relax.Var("x", relax.TensorType((2, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.add(x, builder.emit(relax.op.astype(constant, "float32"))))
        builder.emit_func_output(y)
    (folded,) = constants(FoldConstants()(builder.get()))
    assert folded.dtype == np.float32
    np.testing.assert_array_equal(folded, numbers)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_integers_are_folded_as_tvm_divides_them(dtype):
    """Towards zero, in their own type."""
    limits = np.iinfo(dtype)
    left = np.array([7, 9, limits.max, limits.max - 1, limits.min, limits.min + 1], dtype)
    right = np.array([2, 4, 1, 3, 3, 2], dtype)
    if limits.min < 0:
        # Also without a remainder, which is nothing to round.
        left = np.append(left, [-7, 7, -7, -6, 6, -6, 0, -1]).astype(dtype)
        right = np.append(right, [2, -2, -2, 2, -2, -2, -3, 7]).astype(dtype)
    (folded,) = constants(FoldConstants()(_folding(relax.op.divide, left, right)))
    exact = [
        abs(int(a)) // abs(int(b)) * (-1 if (a < 0) != (b < 0) else 1)
        for a, b in zip(left, right, strict=True)
    ]
    assert folded.dtype == dtype
    assert folded.tolist() == exact


@pytest.mark.parametrize("operator", ["add", "subtract", "multiply"])
def test_integers_wrap_around(operator):
    left, right = np.array([200, 7, 255], "uint8"), np.array([100, 200, 3], "uint8")
    (folded,) = constants(FoldConstants()(_folding(getattr(relax.op, operator), left, right)))
    exact = getattr(np, operator)(left.astype(int), right.astype(int)) % 256
    assert folded.tolist() == exact.tolist()


def test_large_integers_keep_their_digits():
    left, right = np.array([2**53 + 1, 2**63 - 1]), np.array([1, 1])
    (folded,) = constants(FoldConstants()(_folding(relax.op.divide, left, right)))
    assert folded.tolist() == left.tolist()


def test_integers_divided_by_zero_stay():
    mod = _folding(relax.op.divide, np.array([1, 2]), np.array([1, 0]))
    tvm.ir.assert_structural_equal(FoldConstants()(mod), mod)


@pytest.mark.parametrize(
    ("number", "folds"), [(2.7, True), (-2.7, True), (float("nan"), False), (3e9, False), (2.0**31, False)]
)
def test_casts_to_integers_that_hold_the_number_are_folded(number, folds):
    array = np.array([number], "float32")
    mod = _folding(lambda c, _: relax.op.astype(c, "int32"), array, array, result="int32")
    found = constants(FoldConstants()(mod))
    assert [c.dtype.name for c in found] == (["int32"] if folds else ["float32"])
    assert not folds or found[0].tolist() == [int(number)]


def test_an_operand_that_is_no_tensor_stays():
    two = tvm.tirx.FloatImm("float32", 2.0)
    mod = _folding(lambda c, _: relax.op.add(c, two), *[np.ones(3, "float32")] * 2)
    assert [c.tolist() for c in constants(FoldConstants()(mod))] == [[1.0, 1.0, 1.0]]


def _folding(operator, left, right, result=None) -> tvm.IRModule:
    """``operator`` on two constants, added to a parameter."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(left.shape, result or str(left.dtype)))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = operator(*(relax.const(array, str(array.dtype)) for array in (left, right)))
            y = builder.emit_output(relax.op.add(x, builder.emit(value)))
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('R.sqrt(R.const([-1.0], "float32"))', np.nan),
        ('R.rsqrt(R.const([0.0], "float32"))', np.inf),
        ('R.divide(R.const([-1.0], "float32"), R.const([0.0], "float32"))', -np.inf),
        ('R.multiply(R.const([3e38], "float32"), R.const([10.0], "float32"))', np.inf),
    ],
)
def test_numbers_out_of_range_are_folded_without_a_word(expression, expected):
    mod = dataflow(f"c = {expression}\ny = R.add(x, c)", parameters='x: R.Tensor((1,), "float32")')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (folded,) = constants(FoldConstants()(mod))
    np.testing.assert_array_equal(folded, [expected])


NUMBERS = np.array([[-3, 5, 127], [0, -128, 7]])
SCALES = np.array([0.5, 0.25, 2.0], "float32")


@pytest.mark.parametrize(
    ("shape", "dtype", "axis", "scales", "zeros", "folds"),
    [
        ((2, 3), "int32", 1, SCALES, np.zeros(3, "int32"), True),
        ((2, 3), "int32", -1, SCALES, np.zeros(3, "int32"), True),
        ((2, 3), "int32", 0, SCALES[:2], np.zeros(2, "int32"), True),
        ((6,), "int32", 0, np.float32(0.5), np.int32(0), True),
        ((6,), "int8", 0, np.float32(0.5), np.int8(-5), True),
        ((6,), "uint8", 0, np.float32(2), np.uint8(200), True),
        ((2, 3), "int8", 1, SCALES, np.zeros(3, "int8"), False),
        ((2, 3), "uint8", 0, SCALES[:2], np.array([3, 250], "uint8"), False),
    ],
)
def test_conversions_of_integers_are_folded_but_for_matrices_of_eight_bits(
    shape, dtype, axis, scales, zeros, folds
):
    integers = NUMBERS.astype(dtype).reshape(shape)
    call = relax.op.dequantize(
        *(relax.const(one, str(one.dtype)) for one in (integers, scales, zeros)),
        axis=axis,
        out_dtype="float32",
    )
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.add(x, builder.emit(call)))
        builder.emit_func_output(y)
    mod = builder.get()
    after = FoldConstants()(mod)
    if not folds:
        tvm.ir.assert_structural_equal(after, mod)
        return
    (folded,) = constants(after)
    rows = [1] * len(shape)
    if scales.size > 1:
        rows[axis] = -1
    expected = (integers.astype("float64") - zeros.astype("float64").reshape(rows)) * scales.reshape(rows)
    np.testing.assert_array_equal(folded, expected)
    assert folded.dtype == np.float32


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("scales", "mode", "moves"),
    [(0.5, "fast", True), ([0.5], "clip", True), ([0.5] * 4, "fast", False), (0.5, "nan", False)],
)
def test_rows_of_a_quantised_table_are_dequantised_by_themselves(axis, scales, mode, moves) -> None:
    table = np.random.default_rng(0).integers(-128, 128, (4, 4)).astype("int8")
    numbers = [relax.const(np.array(scales, "float32")), relax.const(np.full(np.shape(scales), 3, "int8"))]
    i = relax.Var("i", relax.TensorType((2, 5), "int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [i]):
        with builder.dataflow():
            real = relax.op.dequantize(relax.const(table), *numbers, axis=1, out_dtype="float32")
            y = builder.emit_output(relax.op.take(builder.emit(real), i, axis=axis, mode=mode))
        builder.emit_func_output(y)
    before = builder.get()
    after = FoldConstants()(before)
    if not moves:
        tvm.ir.assert_structural_equal(after, before)
        return
    steps = [binding.value for block in after["main"].body.blocks for binding in block.bindings]
    assert [call.op.name for call in steps] == ["relax.take", "relax.dequantize"]
    assert str(steps[0].ty.dtype) == "int8"
    indices = np.random.default_rng(1).integers(0, 4, (2, 5))
    results = [
        relax.VirtualMachine(tvm.compile(relax.transform.LegalizeOps()(mod), "llvm"), tvm.cpu())["main"](
            tvm.runtime.tensor(indices)
        ).numpy()
        for mod in (before, after)
    ]
    np.testing.assert_array_equal(*results)
