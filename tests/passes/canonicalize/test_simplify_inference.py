"""SimplifyInference: one form for each idea; what only looks alike stays."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from dataflow_text import assert_becomes, assert_unchanged, dataflow, operators
from relax_programs import TARGET, normal, result_of, run
from tvm import relax

from tvm_mxplan.operators.put import put
from tvm_mxplan.passes.canonicalize import SimplifyInference

FOUR = ", ".join(['R.const([1.0, 2.0, 3.0], "float32")'] * 4)
TWO = 'x: R.Tensor((2, 3, 4, 4), "float32"), z: R.Tensor((2, 3, 4, 4), "float32")'


def test_dropout():
    assert_becomes(
        SimplifyInference(), "a = R.nn.dropout(x, rate=0.5)\nb = a[0]\ny = R.nn.relu(b)", "y = R.nn.relu(x)"
    )


@pytest.mark.parametrize(
    ("split", "bounds"),
    [("indices_or_sections=2, axis=-1", (3, 2, 4)), ("indices_or_sections=[1, 3], axis=2", (2, 1, 3))],
)
def test_a_section_of_a_split_is_a_slice(split, bounds):
    axis, begin, end = bounds
    assert_becomes(
        SimplifyInference(),
        f"a = R.split(x, {split})\nb = a[1]\ny = R.nn.relu(b)",
        f"b = R.strided_slice(x, [{axis}], [{begin}], [{end}])\ny = R.nn.relu(b)",
    )


def test_a_split_that_is_used_as_a_whole_stays():
    assert_unchanged(SimplifyInference(), "a = R.split(x, 2, axis=2)\ny = R.concat(a, axis=1)")


def test_neighbouring_sections_that_meet_again_are_one():
    halves = "a = R.strided_slice(x, [1], [0], [1])\nb = R.strided_slice(x, [1], [1], [3])\n"
    assert_becomes(
        SimplifyInference(),
        halves + "y = R.concat((a, b, z), axis=1)",
        "y = R.concat((x, z), axis=1)",
        parameters=TWO,
    )
    assert_becomes(
        SimplifyInference(), halves + "c = R.concat((a, b), axis=-3)\ny = R.nn.relu(c)", "y = R.nn.relu(x)"
    )
    assert_becomes(
        SimplifyInference(),
        "a = R.strided_slice(x, [2], [0], [1])\nb = R.strided_slice(x, [2], [1], [3])\n"
        "y = R.concat((z, a, b), axis=2)",
        "a = R.strided_slice(x, [2], [0], [3])\ny = R.concat((z, a), axis=2)",
        parameters=TWO,
    )


@pytest.mark.parametrize(
    ("second", "axis"),
    [
        ("R.strided_slice(x, [1], [2], [3])", 1),
        ("R.strided_slice(z, [1], [1], [2])", 1),
        ("R.strided_slice(x, [1], [1], [2])", 2),
        ("R.strided_slice(x, [1], [1], [3], [2])", 1),
    ],
    ids=["a gap", "another tensor", "another axis", "a stride"],
)
def test_other_slices_stay_apart(second, axis):
    lines = f"a = R.strided_slice(x, [1], [0], [1])\nb = {second}\ny = R.concat((a, b), axis={axis})"
    assert_unchanged(SimplifyInference(), lines, parameters=TWO)


@pytest.mark.parametrize(
    "call", ["R.broadcast_to(x, (2, 3, 4, 4))", "R.reshape(x, (2, 3, 4, 4))", 'R.astype(x, "float32")']
)
def test_identities(call):
    assert_becomes(SimplifyInference(), f"a = {call}\ny = R.nn.relu(a)", "y = R.nn.relu(x)")


@pytest.mark.parametrize(("reduction", "operator"), [("sum", "add"), ("max", "maximum"), ("min", "minimum")])
def test_reduction_over_a_stack_is_a_chain(reduction, operator):
    assert_becomes(
        SimplifyInference(),
        f"s = R.stack((x, z, x), axis=0)\ny = R.{reduction}(s, axis=[0], keepdims=False)",
        f"a = R.{operator}(x, z)\ny = R.{operator}(a, x)",
        parameters=TWO,
    )


def test_stack_of_one():
    assert_becomes(
        SimplifyInference(),
        "a = R.nn.relu(x)\ns = R.stack((a,), axis=0)\nb = R.sum(s, axis=[0], keepdims=False)\ny = R.exp(b)",
        "a = R.nn.relu(x)\ny = R.exp(a)",
    )


@pytest.mark.parametrize(
    "line",
    [
        "y = R.sum(s, axis=[0], keepdims=True)",
        "y = R.sum(s, axis=[1], keepdims=False)",
        "y = R.sum(s, axis=[0, 1], keepdims=False)",
        "y = R.sum(s)",
        "y = R.prod(s, axis=[0], keepdims=False)",
    ],
)
def test_other_reductions_over_a_stack_stay(line):
    assert_unchanged(SimplifyInference(), f"s = R.stack((x, z), axis=0)\n{line}", parameters=TWO)


@pytest.mark.parametrize(
    "lines",
    [
        "y = R.sum(x, axis=[0], keepdims=False)",
        "s = R.concat((x, z), axis=0)\ny = R.sum(s, axis=[0], keepdims=False)",
    ],
)
def test_reductions_over_anything_else_stay(lines):
    """Also where it has an axis and parts as a stack does."""
    assert_unchanged(SimplifyInference(), lines, parameters=TWO)


VECTOR_PARAMETER = 'x: R.Tensor((2, 3, 4, 4), "float32"), v: R.Tensor((3, 1, 1), "float32")'


def test_broadcast_in_front_of_a_binary_operator():
    assert_becomes(
        SimplifyInference(),
        "b = R.broadcast_to(v, (2, 3, 4, 4))\ny = R.multiply(b, x)",
        "y = R.multiply(v, x)",
        parameters=VECTOR_PARAMETER,
    )


def test_broadcast_in_a_stack():
    assert_becomes(
        SimplifyInference(),
        """
        b = R.broadcast_to(v, (2, 3, 4, 4))
        c = R.broadcast_to(R.const(0.5, "float32"), (2, 3, 4, 4))
        s = R.stack((b, x, c), axis=0)
        y = R.max(s, axis=[0], keepdims=False)
        """,
        """
        a = R.maximum(v, x)
        y = R.maximum(a, R.const(0.5, "float32"))
        """,
        parameters=VECTOR_PARAMETER,
    )


def test_broadcast_beyond_the_other_operand_stays():
    assert_unchanged(
        SimplifyInference(),
        "b = R.broadcast_to(v, (5, 2, 3, 4, 4))\nc = R.broadcast_to(v, (5, 2, 3, 4, 4))\ny = R.add(b, c)",
        parameters=VECTOR_PARAMETER,
    )


def test_clip():
    assert_becomes(
        SimplifyInference(),
        'a = R.maximum(x, R.const(-0.5, "float32"))\ny = R.minimum(a, R.const(2.0, "float32"))',
        "y = R.clip(x, R.prim_value(T.float64(-0.5)), R.prim_value(T.float64(2.0)))",
    )


@pytest.mark.parametrize(
    "lines",
    [
        'a = R.maximum(x, z)\ny = R.minimum(a, R.const(2.0, "float32"))',
        'a = R.minimum(x, R.const(2.0, "float32"))\ny = R.maximum(a, R.const(0.0, "float32"))',
        "y = R.add(x, z)",
        "a = R.reshape(x, (6, 16))\ny = R.exp(a)",
    ],
)
def test_ir_unchanged(lines):
    assert_unchanged(SimplifyInference(), lines, parameters=TWO)


@pytest.mark.parametrize("axes", ["[0, 1, 2, 3]", "[-4, 1, -2, 3]"])
def test_an_order_of_axes_that_is_theirs_already(axes):
    lines = f"a = R.permute_dims(x, {axes})\ny = R.nn.relu(a)"
    assert_becomes(SimplifyInference(), lines, "y = R.nn.relu(x)")


@pytest.mark.parametrize("axes", ["[0, 1, 3, 2]", "None"])
def test_another_order_of_axes_stays(axes):
    assert_unchanged(SimplifyInference(), f"a = R.permute_dims(x, {axes})\ny = R.nn.relu(a)")


@pytest.mark.parametrize(("low", "high"), [("1.0", "-1.0"), ("1.0", 'float("nan")'), ('float("nan")', "1.0")])
def test_bounds_that_cross_are_no_clip(low, high):
    lines = f'a = R.maximum(x, R.const({low}, "float32"))\ny = R.minimum(a, R.const({high}, "float32"))'
    simple = SimplifyInference()(dataflow(lines))
    assert [op.name for op in operators(simple)] == ["relax.maximum", "relax.minimum"]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_bounds_are_no_clip(dtype):
    lines = f'a = R.maximum(x, R.const(-3, "{dtype}"))\ny = R.minimum(a, R.const(5, "{dtype}"))'
    assert_unchanged(SimplifyInference(), lines, parameters=f'x: R.Tensor((2, 3), "{dtype}")')


@pytest.mark.parametrize("axis", range(4))
def test_a_broadcast_that_makes_an_axis_larger_stays(axis):
    """Without it no operand has the extent of that axis, and the result would be smaller."""
    shape = [2, 3, 4, 5]
    shape[axis] = 1
    parameters = f'x: R.Tensor({tuple(shape)}, "float32"), z: R.Tensor((1, 1), "float32")'
    lines = "b = R.broadcast_to(z, (2, 3, 4, 5))\ny = R.multiply(x, b)"
    assert_unchanged(SimplifyInference(), lines, parameters=parameters)
    whole = parameters.replace(str(tuple(shape)), "(2, 3, 4, 5)")
    assert_becomes(SimplifyInference(), lines, "y = R.multiply(x, z)", parameters=whole)


def test_a_section_of_a_split_of_unknown_extents_stays():
    lines = "a = R.split(x, [2], axis=1)\nb = a[1]\ny = R.nn.relu(b)"
    assert_unchanged(SimplifyInference(), lines, parameters='x: R.Tensor((2, "n", 4), "float32")')
    assert_unchanged(SimplifyInference(), lines, parameters='x: R.Tensor(dtype="float32", ndim=3)')


def names(mod):
    return [operator.name.removeprefix("relax.") for operator in operators(mod)]


PHASES = [(1, 2, 2), (1, 4, 4), (1, 2, 3), (3, 2, 3)]
"""Axis that is joined, steps of the two last axes."""


@pytest.mark.parametrize(("joined", "high", "wide"), PHASES)
@pytest.mark.parametrize("rows_first", [True, False])
def test_all_phases_of_a_tensor_are_a_permutation_of_it(joined, high, wide, rows_first):
    places = [(i, j) for i in range(high) for j in range(wide)]
    places = places if rows_first else sorted(places, key=lambda place: place[::-1])
    lines = ""
    for at, (i, j) in enumerate(places):
        lines += f"r{at} = R.strided_slice(x, [2], [{i}], [12], [{high}])\n"
        lines += f"p{at} = R.strided_slice(r{at}, [3], [{j}], [12], [{wide}])\n"
    lines += f"y = R.concat(({', '.join(f'p{at}' for at in range(len(places)))}), axis={joined})"
    mod = dataflow(lines, 'x: R.Tensor((2, 3, 12, 12), "float32")')
    joined_up = SimplifyInference()(mod)
    assert names(joined_up) == ["reshape", "permute_dims", "reshape"]
    x = normal(0, 2, 3, 12, 12)
    np.testing.assert_array_equal(result_of(joined_up, x), result_of(mod, x))


@pytest.mark.parametrize(
    "lines",
    [
        "a = R.strided_slice(x, [2], [0], [4], [2])\ny = R.concat((a, a), axis=1)",
        "a = R.strided_slice(x, [2], [0], [4], [2])\nb = R.strided_slice(z, [2], [1], [4], [2])\n"
        "y = R.concat((a, b), axis=1)",
        "a = R.strided_slice(x, [2], [1], [4], [2])\nb = R.strided_slice(x, [2], [0], [4], [2])\n"
        "y = R.concat((a, b), axis=1)",
        "a = R.strided_slice(x, [2], [0], [3], [2])\nb = R.strided_slice(x, [2], [1], [4], [2])\n"
        "c = R.strided_slice(x, [2], [0], [4], [2])\ny = R.concat((a, b, c), axis=1)",
        "a = R.strided_slice(x, [3], [0], [4], [3])\nb = R.strided_slice(x, [3], [1], [5], [3])\n"
        "c = R.strided_slice(x, [3], [1], [4], [2])\ny = R.concat((a, c), axis=1)",
    ],
)
def test_other_slices_with_steps_are_joined_as_they_are(lines):
    mod = dataflow(lines, TWO)
    assert "permute_dims" not in names(SimplifyInference()(mod))


@pytest.mark.parametrize("indices", [[4, 5, 0, 1, 2, 3], [1, 2, 4, 5]])
def test_stretches_of_an_axis_are_joined(indices):
    lines = f'i = R.const({indices}, "int64")\ny = R.take(x, i, axis=1)'
    mod = dataflow(lines, 'x: R.Tensor((2, 6, 16), "float32")')
    found = SimplifyInference()(mod)
    assert names(found)[-1] == "concat" and "take" not in names(found)
    x = normal(0, 2, 6, 16)
    np.testing.assert_array_equal(result_of(found, x), x[:, indices])


@pytest.mark.parametrize(
    ("indices", "row"),
    [
        ([5, 4, 3, 2, 1], 16),
        ([4, 5, 0, 1], 4),
        ([-1, 0, 1], 16),
        ([4, 5, 6, 0], 16),
        ([0, 0, 1, 2, 3, 4, 5], 16),
    ],
)
def test_others_are_taken(indices, row):
    """Many stretches, short ones, places from the end, those that are none, and one twice."""
    lines = f'i = R.const({indices}, "int64")\ny = R.take(x, i, axis=1, mode="wrap")'
    mod = dataflow(lines, f'x: R.Tensor((2, 6, {row}), "float32")')
    assert names(SimplifyInference()(mod)) == ["take"]


@pytest.mark.parametrize("axes", ["None", "[-1]", "[2, 3]"])
def test_variances_of_norms_stay(axes):
    assert_unchanged(SimplifyInference(), f"y = R.variance(x, axis={axes})")


@pytest.mark.parametrize("axes", [(1,), (-3, 0), (2, 1)])
@pytest.mark.parametrize("kept", [True, False])
def test_variances_along_others(axes, kept):
    mod = dataflow(f"y = R.variance(x, axis={list(axes)}, keepdims={kept})")
    found = SimplifyInference()(mod)
    assert names(found) == ["mean", "subtract", "multiply", "mean"]
    x = normal(0, 2, 3, 4, 4) + np.float32(3)
    wanted = x.astype("float64").var(axes, keepdims=kept)
    np.testing.assert_allclose(result_of(found, x), wanted, rtol=1e-5)


def test_what_has_no_known_shape_is_left() -> None:
    """Operands of unknown extents may be anything; a concatenation of all elements has no axis."""
    unknown = 'x: R.Tensor(dtype="float32", ndim=4), v: R.Tensor((3, 1, 1), "float32")'
    lines = "b = R.broadcast_to(v, (2, 3, 4, 4))\ny = R.multiply(b, x)"
    assert_unchanged(SimplifyInference(), lines, parameters=unknown)
    rows = 'x: R.Tensor((6,), "float32"), z: R.Tensor((5,), "float32")'
    assert_unchanged(SimplifyInference(), "y = R.concat((x, z), axis=None)", parameters=rows)
    pair = 'p: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 4), "float32"))'
    assert_unchanged(SimplifyInference(), "y = R.concat(p, axis=1)", parameters=pair)


ONES, ZEROS = (f'R.const([[[{number}]], [[{number}]], [[{number}]]], "float32")' for number in (1.0, 0.0))


@pytest.mark.parametrize(
    "call",
    [
        f"R.multiply(x, {ONES})",
        f"R.multiply({ONES}, x)",
        'R.divide(x, R.const(1.0, "float32"))',
        f"R.add(x, {ZEROS})",
        f"R.add({ZEROS}, x)",
        f"R.subtract(x, {ZEROS})",
    ],
)
def test_what_makes_no_difference(call):
    assert_becomes(SimplifyInference(), f"a = {call}\ny = R.nn.relu(a)", "y = R.nn.relu(x)")


@pytest.mark.parametrize(
    "call",
    [
        f"R.subtract({ZEROS}, x)",
        f"R.divide({ONES}, x)",
        f"R.multiply(x, {ZEROS})",
        f"R.add(x, {ONES})",
        'R.multiply(x, R.const([[[[1.0]]], [[[1.0]]]], "float32"))',
        'R.multiply(x, R.const([[[1.0]], [[1.0]], [[1.0000001]]], "float32"))',
    ],
)
def test_what_makes_one(call):
    """Other operators, sides and numbers, and a constant that repeats the operand."""
    shape = 'x: R.Tensor((1, 3, 4, 4), "float32")'
    assert_unchanged(SimplifyInference(), f"a = {call}\ny = R.nn.relu(a)", parameters=shape)


ORDER, BACK = (3, 0, 1, 2), (1, 2, 3, 0)


def _put_permuted(back: tuple[int, ...], permuted: bool) -> tvm.IRModule:
    """Rows 1 and 3 of the permuted tensor, which is permuted back afterwards."""
    data = relax.Var("x", relax.TensorType((2, 3, 4, 5), "float32"))
    part = relax.Var("z", relax.TensorType((2, 3, 4, 2) if permuted else (2, 2, 3, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data, part]):
        with builder.dataflow():
            whole = builder.emit(relax.op.permute_dims(data, ORDER))
            rows = builder.emit(relax.op.permute_dims(part, ORDER)) if permuted else part
            with_rows = builder.emit(put(whole, rows, 0, 1, 2))
            result = builder.emit_output(relax.op.permute_dims(with_rows, back))
        builder.emit_func_output(result)
    return builder.finalize()


@pytest.mark.parametrize("permuted", [True, False])
def test_a_put_between_permutations_is_one_along_another_axis(permuted):
    mod = _put_permuted(BACK, permuted)
    after = relax.transform.DeadCodeElimination()(SimplifyInference()(mod))
    names = [op.name for op in operators(after)]
    assert names == ["relax.permute_dims"] * (not permuted) + ["relax.mxplan.put"]
    x, z = normal(0, 2, 3, 4, 5), normal(1, *((2, 3, 4, 2) if permuted else (2, 2, 3, 4)))
    expected = x.copy()
    expected[..., 1::2] = z if permuted else z.transpose(BACK)
    (result,) = run(relax.VirtualMachine(tvm.compile(after, TARGET), tvm.cpu()), x, z)
    np.testing.assert_array_equal(result, expected)


def test_a_put_between_other_permutations_stays():
    mod = _put_permuted((2, 1, 3, 0), True)
    names = [op.name for op in operators(SimplifyInference()(mod))]
    assert names.count("relax.permute_dims") == 3
