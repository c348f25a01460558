"""``NameOperators``: names by kind and order, kept through partitioning, and steps that carry them."""

from __future__ import annotations

import tvm
from dataflow_text import dataflow
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.origins import origin_table, origins_of, with_origins
from tvm_mxplan.passes.region import BuildPrograms, NameOperators, PartitionRegions
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.passes.region.name_operators import names_of
from tvm_mxplan.passes.relax_types import operator_name


def names(mod: tvm.IRModule) -> list[str]:
    """Names in ``main``, in order."""
    calls = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    return [str(operator_name(call)) for call in calls if isinstance(call, relax.Call)]


def step_names(mod: tvm.IRModule) -> list[str]:
    backend = OneDNN()
    passes = [DispatchOperators(preference_of([backend])), PartitionRegions(), BuildPrograms(backend)]
    mod = tvm.transform.Sequential(passes)(mod)
    programs = [program_of(function) for _, function in regions(mod, backend.name)]
    return [step.name for program in programs for step in program.steps]


def test_operators_are_named_by_kind_and_order():
    mod = dataflow(
        "a = R.nn.relu(x)\nb = R.add(a, x)\nc = R.nn.relu(b)\ny = R.nn.max_pool2d(c, [2, 2], [2, 2])"
    )
    assert names(mod) == ["None"] * 4
    named = NameOperators()(mod)
    assert names(named) == ["relu_0", "add_0", "relu_1", "max_pool2d_0"]
    tvm.ir.assert_structural_equal(named, mod)


def test_names_are_the_same_after_a_second_time():
    mod = NameOperators()(dataflow("a = R.nn.relu(x)\ny = R.add(a, x)"))
    assert names(NameOperators()(mod)) == names(mod)


def test_steps_carry_the_names_of_their_operators():
    mod = dataflow("a = R.exp(x)\nb = R.sin(a)\nc = R.exp(b)\ny = R.nn.max_pool2d(c, [2, 2], [2, 2])")
    assert step_names(NameOperators()(mod)) == ["exp_0", "exp_1", "max_pool2d_0"]
    assert step_names(mod) == ["eltwise0", "eltwise0", "pooling0"]


def test_equal_operators_keep_their_own_names():
    mod = dataflow("a = R.exp(x)\nb = R.nn.softmax(a)\nc = R.exp(b)\ny = R.nn.softmax(c)")
    assert step_names(NameOperators()(mod)) == ["exp_0", "softmax_0", "exp_1", "softmax_1"]


def test_further_steps_of_an_operator_are_named_below_it():
    """A softmax along another axis than the last one is moved there first."""
    mod = dataflow("y = R.nn.softmax(x, axis=2)")
    assert step_names(NameOperators()(mod)) == ["softmax_0.reorder0", "softmax_0", "reorder0"]


def test_the_function_keeps_what_its_operators_come_from():
    """Names take the place of origins in spans; a second time changes nothing."""
    mod = dataflow("a = R.nn.relu(x)\ny = R.add(a, x)")
    (relu, add) = (binding.value for binding in mod["main"].body.blocks[0].bindings[:2])
    origin = Origin("/layer1/relu", "Relu")
    labelled = relax.VarBinding(mod["main"].body.blocks[0].bindings[0].var, with_origins(relu, (origin,)))
    assert origins_of(labelled.value) == (origin,) and origins_of(add) == ()
    function = mod["main"]
    block = relax.DataflowBlock([labelled, *function.body.blocks[0].bindings[1:]])
    body = relax.SeqExpr([block], function.body.body)
    mod["main"] = relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)
    named = NameOperators()(mod)
    assert origin_table(named) == {"relu_0": (origin,)}
    assert names(named)[:2] == ["relu_0", "add_0"] == names_of(named)
    assert origin_table(NameOperators()(named)) == {"relu_0": (origin,)}


def test_every_function_knows_its_own_operators_alone():
    """Functions take their turns by their names."""
    mod = tvm.IRModule()
    for name, operator in (("second", relax.op.exp), ("first", relax.op.exp)):
        x = relax.Var("x", relax.TensorType([2, 3], "float32"))
        builder = relax.BlockBuilder()
        with builder.function(name, [x]):
            with builder.dataflow():
                y = builder.emit_output(with_origins(operator(x), (Origin(f"/{name}", "Exp"),)))
            builder.emit_func_output(y)
        mod.update_func(relax.GlobalVar(name), builder.get()[name])
    named = NameOperators()(mod)
    tables = {name: origin_table(tvm.IRModule({"main": named[name]})) for name in ("first", "second")}
    assert tables == {
        "first": {"exp_0": (Origin("/first", "Exp"),)},
        "second": {"exp_1": (Origin("/second", "Exp"),)},
    }
