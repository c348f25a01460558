"""restore_shapes: composites state the shape of their result where TVM lost it, and callers know it."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_mxplan.operators.recurrent import USUAL, Layer, recurrent
from tvm_mxplan.passes.dispatch.restore_shapes import _is_known, _shapes, restore_shapes

WEIGHTS = {"weights": 3, "recurrence": 5}


def fused(size: object) -> tvm.IRModule:
    """A resize to ``size`` as TVM's FuseOpsByPattern leaves it, and an operator behind it."""
    n, h = (tirx.Var(name, "int64") for name in "nh")
    x = relax.Var("x", relax.TensorType([n, 3, h, h], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            larger = builder.emit(
                relax.op.image.resize2d(
                    x, relax.ShapeExpr([size(h), size(h)]), layout="NCHW", method="linear"
                )
            )
            y = builder.emit_output(relax.op.erf(larger))
        builder.emit_func_output(y)
    pattern = relax.dpl.is_op("relax.image.resize2d")(relax.dpl.wildcard(), relax.dpl.wildcard())
    return relax.transform.FuseOpsByPattern([("mine.resize", pattern)])(builder.get())


def composite(mod: tvm.IRModule) -> relax.Function:
    (function,) = [f for f in mod.functions.values() if f.attrs and f.attrs.get("Composite")]
    return function


def test_a_shape_with_symbols_is_written_out():
    before = fused(lambda h: h * 2)
    assert composite(before).ret_ty.shape is None  # what this is for
    after = restore_shapes(before)
    (_, _, height, width) = composite(after).ret_ty.shape.values
    (symbol,) = {
        var for var in relax.analysis.tir_vars_in_type(composite(after).params[0].ty) if var.name == "h"
    }
    tvm.ir.assert_structural_equal(height, symbol * 2)
    tvm.ir.assert_structural_equal(width, symbol * 2)
    call, erf = after["main"].body.blocks[0].bindings
    assert call.var.ty.shape is not None
    assert erf.var.ty.shape is not None
    relax.analysis.well_formed(after)


def test_ir_unchanged():
    mod = fused(lambda h: 32)
    assert restore_shapes(mod).same_as(mod)


def test_a_tuple_of_known_shapes_is_left_alone():
    """A recurrent layer over a number of steps that only an expression tells."""
    n = tirx.Var("n", "int64")
    vector = relax.Var("vector", relax.TensorType([n], "float32"))
    data = relax.Var("data", relax.TensorType([n * 2, 2, 3], "float32"))
    weights = {name: relax.const(np.ones((1, 20, size), "float32")) for name, size in WEIGHTS.items()}
    builder = relax.BlockBuilder()
    with builder.function("main", [vector, data]):
        with builder.dataflow():
            layer = Layer("lstm", "forward", USUAL["lstm"])
            every = builder.emit(recurrent(layer, {"data": data, **weights}))
            y = builder.emit_output(relax.op.exp(relax.TupleGetItem(every, 0)))
        builder.emit_func_output(y)
    pattern = relax.dpl.is_op("relax.mxplan.lstm")(varg_default_wildcard=True)
    mod = relax.transform.FuseOpsByPattern([("mine.lstm", pattern)])(builder.get())
    assert any(isinstance(param.ty, relax.ShapeType) for param in composite(mod).params)
    assert restore_shapes(mod).same_as(mod)


def test_several_composites_are_restored():
    """In the order of their names, each with its own shape."""
    n, h = (tirx.Var(name, "int64") for name in "nh")
    x = relax.Var("x", relax.TensorType([n, 3, h, h], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            sizes = [relax.ShapeExpr([h * factor, h * factor]) for factor in (2, 3)]
            larger = [
                builder.emit_output(relax.op.image.resize2d(x, size, layout="NCHW", method="linear"))
                for size in sizes
            ]
        builder.emit_func_output(relax.Tuple(larger))
    pattern = relax.dpl.is_op("relax.image.resize2d")(relax.dpl.wildcard(), relax.dpl.wildcard())
    before = relax.transform.FuseOpsByPattern([("mine.resize", pattern)])(builder.get())
    after = restore_shapes(before)
    known = [f.ret_ty.shape for f in after.functions.values() if f.attrs and f.attrs.get("Composite")]
    assert len(known) == 2 and None not in known
    assert all(binding.var.ty.shape is not None for binding in after["main"].body.blocks[0].bindings)
    relax.analysis.well_formed(after)


def test_shapes_of_every_field_have_to_be_known():
    known, other = relax.TensorType((2, 3), "float32"), relax.TensorType((4,), "int8")
    lost = relax.TensorType(dtype="float32", ndim=2)
    tuples = tvm.ir.TupleType
    for type_ in (known, tuples([known]), tuples([known, other]), tuples([tuples([other]), known])):
        assert _is_known(type_)
    for type_ in (
        lost,
        tuples([lost]),
        tuples([known, lost]),
        tuples([lost, known]),
        tuples([known, tuples([other, lost])]),
        relax.ShapeType([2]),
    ):
        assert not _is_known(type_)


def test_parameters_that_are_shapes():
    n = tvm.tirx.Var("n", "int64")
    params = [
        relax.Var("x", relax.TensorType((n,), "float32")),
        relax.Var("s", relax.ShapeType([n, 4])),
        relax.Var("t", relax.ShapeType(ndim=2)),
    ]
    function = relax.Function(params, params[0], params[0].ty)
    ((param, shape),) = _shapes(function).items()
    assert param.same_as(params[1])
    assert str(shape.values[0]) == "n" and int(shape.values[1]) == 4
