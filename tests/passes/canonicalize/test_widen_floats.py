"""WidenFloats: arithmetic on numbers of 16 bits is done in float32; what moves or decides is not."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from dataflow_text import assert_becomes, assert_unchanged, dataflow
from tvm import relax

from tvm_mxplan.passes.canonicalize import WidenFloats
from tvm_mxplan.passes.canonicalize.narrow_operators import MOVING
from tvm_mxplan.passes.origins import origins_of

TYPES = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", TYPES)
def test_a_chain_has_casts_at_its_ends_only(dtype):
    assert_becomes(
        WidenFloats(),
        """
        a = R.matmul(x, w)
        b = R.add(a, x)
        y = R.nn.relu(b)
        """,
        f"""
        c = R.astype(x, "float32")
        d = R.astype(w, "float32")
        a = R.matmul(c, d)
        b = R.add(a, c)
        e = R.nn.relu(b)
        y = R.astype(e, "{dtype}")
        """,
        parameters=f'x: R.Tensor((17, 17), "{dtype}"), w: R.Tensor((17, 17), "{dtype}")',
    )


def test_attributes_that_state_the_type_state_float32():
    assert_becomes(
        WidenFloats(),
        """
        a = R.nn.conv2d(x, w, out_dtype="float16")
        y = R.sum(a, axis=[1])
        """,
        """
        c = R.astype(x, "float32")
        d = R.astype(w, "float32")
        a = R.nn.conv2d(c, d, out_dtype="float32")
        e = R.sum(a, axis=[1])
        y = R.astype(e, "float16")
        """,
        parameters='x: R.Tensor((1, 3, 9, 9), "float16"), w: R.Tensor((5, 3, 3, 3), "float16")',
    )


def test_a_cast_of_what_was_narrow_keeps_its_digits_and_one_of_float32_rounds():
    assert_becomes(
        WidenFloats(),
        """
        a = R.add(x, x)
        b = R.astype(a, "float32")
        c = R.exp(b)
        d = R.astype(c, "float16")
        e = R.astype(z, "float16")
        y = R.multiply(d, e)
        """,
        """
        f = R.astype(x, "float32")
        a = R.add(f, f)
        c = R.exp(a)
        e = R.astype(z, "float16")
        g = R.astype(e, "float32")
        h = R.multiply(c, g)
        y = R.astype(h, "float16")
        """,
        parameters='x: R.Tensor((17,), "float16"), z: R.Tensor((17,), "float32")',
    )


@pytest.mark.parametrize("first", [False, True])
def test_what_reads_narrow_numbers_beside_the_models_float32_keeps_its_digits(first):
    """One of two operands is enough, also a tuple's field and a constant."""
    operands = "z, b" if first else "b, z"
    assert_becomes(
        WidenFloats(),
        f"""
        a = R.add(x, x)
        b = R.astype(a, "float32")
        c = R.multiply({operands})
        p = R.concat((c, R.const([1.0], "float32")))
        d = R.astype(p, "float16")
        y = R.negative(d)
        """,
        f"""
        f = R.astype(x, "float32")
        b = R.add(f, f)
        c = R.multiply({operands})
        p = R.concat((c, R.const([1.0], "float32")))
        h = R.negative(p)
        y = R.astype(h, "float16")
        """,
        parameters='x: R.Tensor((17,), "float16"), z: R.Tensor((17,), "float32")',
    )


def test_the_models_float32_is_rounded_where_the_model_says():
    """Nothing that it follows from has 16 bits."""
    assert_becomes(
        WidenFloats(),
        """
        c = R.multiply(z, z)
        d = R.astype(c, "float16")
        y = R.negative(d)
        """,
        """
        c = R.multiply(z, z)
        d = R.astype(c, "float16")
        g = R.astype(d, "float32")
        h = R.negative(g)
        y = R.astype(h, "float16")
        """,
        parameters='z: R.Tensor((17,), "float32")',
    )


def test_what_decides_reads_what_the_type_holds():
    parameters = 'x: R.Tensor((17,), "float16")'
    before = dataflow(
        """
        a = R.multiply(x, x)
        b = R.floor(a)
        c = R.astype(a, "int32")
        d = R.astype(b, "int32")
        y = R.add(c, d)
        """,
        parameters=parameters,
    )
    after = dataflow(
        """
        e = R.astype(x, "float32")
        f = R.multiply(e, e)
        a = R.astype(f, "float16")
        g = R.astype(a, "float32")
        h = R.floor(g)
        b = R.astype(h, "float16")
        c = R.astype(a, "int32")
        d = R.astype(b, "int32")
        y = R.add(c, d)
        """,
        parameters=parameters,
    )
    tvm.ir.assert_structural_equal(WidenFloats()(before), after)


def test_a_quantiser_reads_what_the_type_holds():
    parameters = 'x: R.Tensor((17,), "float16")'
    numbers = 'R.const(0.5, "{}"), R.const(3, "uint8"), axis=0, out_dtype="uint8"'
    before = dataflow(
        f"""
        a = R.multiply(x, x)
        y = R.quantize(a, {numbers.format("float16")})
        """,
        parameters=parameters,
    )
    after = dataflow(
        f"""
        e = R.astype(x, "float32")
        f = R.multiply(e, e)
        a = R.astype(f, "float16")
        g = R.astype(a, "float32")
        y = R.quantize(g, {numbers.format("float32")})
        """,
        parameters=parameters,
    )
    tvm.ir.assert_structural_equal(WidenFloats()(before), after)


@pytest.mark.parametrize(
    "body",
    [
        "y = R.take(x, i, axis=0)",
        "a = R.reshape(x, (3, 17))\n        y = R.permute_dims(a)",
        'a = R.astype(i, "float16")\n        y = R.concat((a, a))',
    ],
)
def test_what_only_moves_stays(body):
    assert_unchanged(
        WidenFloats(), body, parameters='x: R.Tensor((17, 3), "float16"), i: R.Tensor((5,), "int64")'
    )


def test_results_of_a_tuple_are_widened_one_by_one():
    assert_becomes(
        WidenFloats(),
        """
        a = R.add(x, x)
        b = R.split(a, 2, axis=0)
        c = b[0]
        d = b[1]
        y = R.subtract(c, d)
        """,
        """
        f = R.astype(x, "float32")
        a = R.add(f, f)
        b = R.split(a, 2, axis=0)
        c = b[0]
        d = b[1]
        e = R.subtract(c, d)
        y = R.astype(e, "bfloat16")
        """,
        parameters='x: R.Tensor((6, 3), "bfloat16")',
    )


def test_constants_become_float32_once():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2, 3], "float16"))
    weights = relax.const(np.arange(9, dtype="float16").reshape(3, 3) / 7, "float16")
    with builder.function("main", [x]):
        a = builder.emit(relax.op.matmul(x, weights))
        builder.emit_func_output(builder.emit(relax.op.matmul(a, weights)))
    widened = WidenFloats()(builder.get())
    found = []

    def visit(expr):
        if isinstance(expr, tvm.ir.GenericConst):
            found.append(expr)

    relax.analysis.post_order_visit(widened["main"], visit)
    assert found
    assert len({one.value.__chandle__() for one in found}) == 1
    assert (found[0].value.numpy() == weights.value.numpy().astype("float32")).all()


def test_operators_say_in_which_type_the_model_states_them():
    body = 'a = R.add(x, x)\n        b = R.astype(a, "float32")\n        y = R.multiply(b, z)'
    parameters = 'x: R.Tensor((7,), "bfloat16"), z: R.Tensor((7,), "float32")'
    widened = WidenFloats()(dataflow(body, parameters=parameters))
    computes = {
        binding.value.op.name: [origin.computes for origin in origins_of(binding.value)]
        for block in widened["main"].body.blocks
        for binding in block.bindings
    }
    assert computes["relax.add"] == ["bfloat16"]
    assert computes["relax.multiply"] == []


def test_branches_and_loops_take_and_give_their_own_types():
    from tvm.script import ir as I
    from tvm.script import relax as R

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((7,), "float16"), c: R.Tensor((), "bool")) -> R.Tensor((7,), "float16"):
            a = R.add(x, x)
            if c:
                b = R.multiply(a, x)
                d = b
            else:
                e = R.subtract(a, x)
                d = e
            return R.multiply(d, a)

    widened = WidenFloats()(Before)
    relax.analysis.well_formed(widened)
    kinds = set()

    def visit(expr):
        if isinstance(expr, relax.Call) and expr.op.name != "relax.astype":
            kinds.add((expr.op.name, str(expr.ty.dtype)))

    relax.analysis.post_order_visit(widened["main"], visit)
    assert kinds == {(f"relax.{name}", "float32") for name in ("add", "multiply", "subtract")}
    assert str(widened["main"].ret_ty.dtype) == "float16"


def test_names_of_operators_are_relax_operators():
    from tvm_mxplan.passes.canonicalize.narrow_operators import DECIDING

    known = {str(name) for name in tvm.ir.Op.list_op_names()}
    assert known >= MOVING | DECIDING


def test_variables_keep_their_names():
    """Those of results in float32, those that keep their type, and the function's own result."""
    parameters = 'x: R.Tensor((6, 3), "float16"), z: R.Tensor((6, 3), "float32")'
    before = dataflow(
        "a = R.reshape(x, (18,))\nb = R.exp(z)\nc = R.add(b, z)\ny = (a, c)", parameters=parameters
    )
    names = {binding.var.name for block in before["main"].body.blocks for binding in block.bindings}
    after = WidenFloats()(before)
    assert {binding.var.name for block in after["main"].body.blocks for binding in block.bindings} == names


def test_constants_that_are_moved_become_float32_and_those_selected_from_stay():
    """A moved constant is folded; a table is as large as it is."""
    parameters = 'x: R.Tensor((3,), "float16"), i: R.Tensor((2,), "int64")'
    numbers = 'R.const([1.0, 2.0, 4.0], "float16")'
    assert_becomes(
        WidenFloats(),
        f"y = R.concat((x, {numbers}))",
        """
        a = R.astype(x, "float32")
        b = R.concat((a, R.const([1.0, 2.0, 4.0], "float32")))
        y = R.astype(b, "float16")
        """,
        parameters=parameters,
    )
    assert_unchanged(WidenFloats(), f"y = R.take({numbers}, i)", parameters=parameters)
    assert_unchanged(WidenFloats(), "y = R.concat((x, x))", parameters=parameters)


def test_what_was_computed_in_float32_is_moved_in_it():
    assert_becomes(
        WidenFloats(),
        """
        a = R.exp(x)
        b = R.reshape(a, (3, 1))
        y = R.concat((b, z), axis=1)
        """,
        """
        c = R.astype(x, "float32")
        a = R.exp(c)
        b = R.reshape(a, (3, 1))
        d = R.astype(z, "float32")
        e = R.concat((b, d), axis=1)
        y = R.astype(e, "float16")
        """,
        parameters='x: R.Tensor((3,), "float16"), z: R.Tensor((3, 1), "float16")',
    )


def test_casts_to_more_bits_and_to_integers():
    """Of what was computed; a cast to integers reads what the type holds."""
    assert_becomes(
        WidenFloats(),
        """
        a = R.exp(x)
        b = R.astype(a, "float64")
        c = R.astype(a, "int32")
        y = (b, c)
        """,
        """
        d = R.astype(x, "float32")
        a = R.exp(d)
        e = R.astype(a, "float16")
        b = R.astype(a, "float64")
        c = R.astype(e, "int32")
        y = (b, c)
        """,
        parameters='x: R.Tensor((3,), "float16")',
    )


@pytest.mark.parametrize("shape", ["(3, 1)", "ndim=2"])
def test_shapes_that_are_stated_of_results_are_stated_in_float32(shape):
    """Of a parameter they are stated as they are."""
    mod = dataflow(
        f"""
        a = R.exp(x)
        b = R.match_cast(a, R.Tensor({shape}, dtype="float16"))
        c = R.add(b, b)
        d = R.match_cast(z, R.Tensor({shape}, dtype="float16"))
        y = R.multiply(c, d)
        """,
        parameters='x: R.Tensor(dtype="float16"), z: R.Tensor(dtype="float16")',
    )
    after = WidenFloats()(mod)
    bindings = [one for block in after["main"].body.blocks for one in block.bindings]
    stated = [one for one in bindings if isinstance(one, relax.MatchCast)]
    assert [str(one.ty.dtype) for one in stated] == ["float32", "float16"]
    assert [int(one.ty.ndim) for one in stated] == [2, 2]
    assert all((one.ty.shape is None) == (shape == "ndim=2") for one in stated)
    arithmetic = [one.value for one in bindings if isinstance(one.value, relax.Call)]
    assert [str(one.ty.dtype) for one in arithmetic if one.op.name != "relax.astype"] == ["float32"] * 3
    assert [str(one.ty.dtype) for one in arithmetic if one.op.name == "relax.astype"] == [
        "float32", "float32", "float16",
    ]  # fmt: skip


def test_a_result_that_is_read_again_keeps_its_digits():
    """Also one that another block reads by its name."""
    x = relax.Var("x", relax.TensorType((3,), "float16"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit_output(relax.op.exp(x), "first")
        second = builder.emit(relax.op.add(first, first), "second")
        builder.emit_func_output(relax.Tuple([first, second]))
    after = WidenFloats()(builder.get())["main"]
    bindings = [one for block in after.body.blocks for one in block.bindings]
    casts = [one.value for one in bindings if one.value.op.name == "relax.astype"]
    assert [str(one.ty.dtype) for one in casts] == ["float32", "float16", "float16"]
    (total,) = [one.value for one in bindings if one.value.op.name == "relax.add"]
    (exp,) = [one.var for one in bindings if one.value.op.name == "relax.exp"]
    assert all(arg.same_as(exp) for arg in total.args)
