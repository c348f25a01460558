"""Origins of operators on the IR: spans, the table, and passes that lose both."""

from __future__ import annotations

import pytest
import tvm
from dataflow_text import dataflow
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origin, Origins
from tvm_mxplan.passes.origins import (
    keep_origins,
    origin_table,
    origins_of,
    with_origin_table,
    with_origins,
)
from tvm_mxplan.passes.region import NameOperators

FIRST, SECOND = Origin("/a/first", "Relu"), Origin('"quoted"\nname', "Add")


def labelled(lines: str, *origins: Origins) -> tvm.IRModule:
    """A module whose bindings come from these."""
    mod = dataflow(lines)
    function = mod["main"]
    (block,) = function.body.blocks
    bindings = [
        relax.VarBinding(binding.var, with_origins(binding.value, told))
        for binding, told in zip(block.bindings, origins, strict=True)
    ]
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], function.body.body)
    mod["main"] = relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)
    return mod


def found(mod: tvm.IRModule) -> list[Origins]:
    return [origins_of(binding.value) for binding in mod["main"].body.blocks[0].bindings]


def test_spans_hold_names_and_kinds_in_order():
    call = relax.op.nn.relu(relax.Var("x", relax.TensorType((2,), "float32")))
    told = with_origins(call, (SECOND, FIRST))
    assert origins_of(told) == (SECOND, FIRST)
    assert str(told) == str(call)
    assert with_origins(call, ()).same_as(call)


@pytest.mark.parametrize(
    "span",
    [
        None,
        tvm.ir.Span(tvm.ir.SourceName("file.py"), 1, 1, 1, 1),
        tvm.ir.SequentialSpan([tvm.ir.Span(tvm.ir.SourceName("file.py"), 1, 1, 1, 1)]),
    ],
)
def test_spans_of_others_say_nothing(span):
    call = relax.op.nn.relu(relax.Var("x", relax.TensorType((2,), "float32")))
    assert origins_of(relax.Call(call.op, call.args, call.attrs, call.ty_args, span)) == ()


def test_the_table_leaves_out_what_is_not_known():
    mod = dataflow("y = R.nn.relu(x)")
    function = with_origin_table(mod["main"], {"relu_0": (FIRST, SECOND), "add_0": ()})
    assert origin_table(tvm.IRModule({"main": function})) == {"relu_0": (FIRST, SECOND)}
    assert with_origin_table(mod["main"], {"add_0": ()}).same_as(mod["main"])


@tvm.transform.module_pass(opt_level=0, name="Forget")
class Forget:
    """Loses all spans; what is a relu becomes a clip at two ends."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        function = mod["main"]
        builder, new = relax.BlockBuilder(), {}
        with builder.function("main", list(function.params)):
            with builder.dataflow():
                for binding in function.body.blocks[0].bindings:
                    call = binding.value
                    args = [new.get(arg, arg) for arg in call.args]
                    if call.op.name == "relax.nn.relu":
                        args = [builder.emit(relax.op.nn.relu(args[0]), "half")]
                    bare = relax.Call(call.op, args, call.attrs, call.ty_args)
                    new[binding.var] = builder.emit(bare, binding.var.name)
                result = builder.emit_output(new[binding.var], "result")
            builder.emit_func_output(result)
        return builder.get()


def test_calls_come_from_the_binding_in_whose_place_they_stand():
    mod = labelled("a = R.floor(x)\nb = R.nn.relu(a)\ny = R.add(b, x)", (SECOND,), (FIRST,), ())
    assert found(Forget()(mod)) == [()] * 5
    kept = keep_origins(Forget())(mod)
    kinds = [binding.value.op.name for binding in kept["main"].body.blocks[0].bindings[:4]]
    assert kinds == ["relax.floor", "relax.nn.relu", "relax.nn.relu", "relax.add"]
    assert found(kept)[:4] == [(SECOND,), (FIRST,), (FIRST,), ()]
    assert origin_table(NameOperators()(kept)) == {
        "floor_0": (SECOND,),
        "relu_0": (FIRST,),
        "relu_1": (FIRST,),
    }


def test_what_has_no_origins_goes_through():
    mod = dataflow("a = R.floor(x)\ny = R.nn.relu(a)")
    tvm.ir.assert_structural_equal(keep_origins(Forget())(mod), Forget()(mod))
    assert keep_origins(relax.transform.CanonicalizeBindings()).info.name == "CanonicalizeBindings"


def test_a_pass_that_changes_nothing_costs_nothing():
    """Nor does one on a module of unknown origins: what it gives is handed on as it is."""
    keep = tvm.transform.module_pass(lambda mod, _ctx: mod, opt_level=0, name="Keep")
    told = labelled("y = R.nn.relu(x)", (FIRST,))
    assert keep_origins(keep)(told).same_as(told)
    changed: list[tvm.IRModule] = []

    def change(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        changed.append(relax.transform.Normalize()(mod.clone()))
        return changed[-1]

    renew = tvm.transform.module_pass(change, opt_level=0, name="Renew")
    result = keep_origins(renew)(dataflow("y = R.nn.relu(x)"))
    assert result.same_as(changed[-1])


def test_origins_say_in_what_the_model_computes():
    told = Origin("/a", "Relu", "float16")
    call = with_origins(relax.op.nn.relu(relax.Var("x", relax.TensorType((2,), "float32"))), (told, FIRST))
    assert origins_of(call) == (told, FIRST)
    function = with_origin_table(dataflow("y = R.nn.relu(x)")["main"], {"relu_0": (told,), "add_0": (FIRST,)})
    table = origin_table(tvm.IRModule({"main": function}))
    assert table == {"relu_0": (told,), "add_0": (FIRST,)}


def test_only_our_own_among_spans_are_origins():
    ours = with_origins(relax.op.nn.relu(relax.Var("x", relax.TensorType((2,), "float32"))), (FIRST, SECOND))
    other = tvm.ir.Span(tvm.ir.SourceName("file.py"), 1, 1, 1, 1)
    span = tvm.ir.SequentialSpan([other, *ours.span.spans])
    assert origins_of(relax.Call(ours.op, ours.args, ours.attrs, ours.ty_args, span)) == (FIRST, SECOND)
    assert origins_of(relax.Var("x", relax.TensorType((2,), "float32"))) == ()


def test_tables_of_several_functions_are_one():
    functions = {
        name: with_origin_table(
            dataflow("y = R.nn.relu(x)")["main"].with_attr("global_symbol", name), {f"{name}_0": (origin,)}
        )
        for name, origin in (("main", FIRST), ("other", SECOND))
    }
    mod = tvm.IRModule({**functions, "kernel": tvm.tirx.PrimFunc([], tvm.tirx.Evaluate(0))})
    assert origin_table(mod) == {"main_0": (FIRST,), "other_0": (SECOND,)}


def test_bindings_outside_of_dataflow_keep_their_origins():
    """In each function its own: variables of another one may have the same names."""
    x = relax.Var("x", relax.TensorType((2,), "float32"))

    def written(told: dict[str, Origins]) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        for name in ("main", "other"):
            with builder.function(name, [x]):
                call = with_origins(relax.op.nn.relu(x), told.get(name, ()))
                builder.emit_func_output(builder.emit(call, "made"))
        return builder.get()

    lose = tvm.transform.module_pass(lambda _mod, _ctx: written({}), opt_level=0, name="Lose")
    kept = keep_origins(lose)(written({"main": (FIRST,), "other": (SECOND,)}))
    found = {
        name: [origins_of(binding.value) for block in kept[name].body.blocks for binding in block.bindings]
        for name in ("main", "other")
    }
    assert found == {"main": [(FIRST,)], "other": [(SECOND,)]}
