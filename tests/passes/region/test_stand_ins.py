"""hide and reveal: what TVM's merging cannot look at is a call in between, and back as it was."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax, tirx

from tvm_mxplan.passes.region.stand_ins import hide, reveal


def _n(x: relax.Var) -> tirx.Var:
    return x.ty.shape.values[0]


def external(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
    return relax.call_dps_packed("mine", (builder.emit(relax.op.exp(x)),), out_ty=x.ty)


def with_number(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
    return relax.op.strided_slice(x, [1], [0], [_n(x) // 2])


def static_cast(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
    return builder.match_cast(x, relax.TensorType([3, 4], "float32"))


def plain(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
    return relax.op.concat([x, builder.emit(relax.op.erf(x))], 0)


def module(build: object) -> tvm.IRModule:
    x = relax.Var("x", relax.TensorType([tirx.Var("n", "int64"), 4], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.tanh(builder.emit(build(builder, x))))
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize("build", [external, with_number, static_cast])
def test_there_and_back(build):
    mod = module(build)
    hidden, values = hide(mod, mod.get_global_var("main"))
    assert len(values) == 1
    calls = [binding.value for block in hidden["main"].body.blocks for binding in block.bindings]
    assert not any(isinstance(value, relax.MatchCast) for value in calls)
    (stand_in,) = [call for call in calls if isinstance(getattr(call, "op", None), tvm.ir.GlobalVar)]
    assert stand_in.op.name_hint in values
    read = [var for value in values.values() for var in relax.analysis.free_vars(value.value)]
    assert (
        [arg for arg in stand_in.args if isinstance(arg, tvm.ir.Var)]
        == [var for var in read if isinstance(var.ty, relax.TensorType)]
        != []
    )
    assert hidden[stand_in.op].is_pure, "or it could stand in no dataflow block"
    for before, after in zip(mod["main"].body.blocks, hidden["main"].body.blocks, strict=True):
        for old, new in zip(before.bindings, after.bindings, strict=True):
            tvm.ir.assert_structural_equal(old.var.ty, new.var.ty, map_free_vars=True)
    revealed = reveal(hidden["main"], values)
    tvm.ir.assert_structural_equal(revealed, mod["main"].with_attr("global_symbol", "main"))


def test_values_of_equal_types_stay_apart():
    """Two external functions, and ranges over two symbols: alike but for what is hidden."""
    b, t = (tirx.Var(name, "int64") for name in "bt")
    x = relax.Var("x", relax.TensorType([b, t], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            found = [builder.emit(relax.op.arange(symbol)) for symbol in (b, t)]
            found += [
                builder.emit(relax.call_dps_packed(name, (x,), out_ty=x.ty)) for name in ("one", "other")
            ]
            result = builder.emit_output(relax.Tuple(found))
        builder.emit_func_output(result)
    mod = builder.get()
    hidden, values = hide(mod, mod.get_global_var("main"))
    assert len(values) == 4
    revealed = reveal(hidden["main"], values)
    tvm.ir.assert_structural_equal(revealed, mod["main"].with_attr("global_symbol", "main"))


def test_nothing_to_hide():
    mod = module(plain)
    hidden, values = hide(mod, mod.get_global_var("main"))
    assert not values
    assert hidden.same_as(mod)
