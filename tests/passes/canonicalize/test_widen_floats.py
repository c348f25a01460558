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
