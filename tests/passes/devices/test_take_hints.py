"""Devices that a Relax module states: operators that other passes hand on, and that placing goes by."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_mxplan.operators.on_device import ON_DEVICE, device_of, is_moved
from tvm_mxplan.passes.annotations import CPU
from tvm_mxplan.passes.canonicalize.rewriter import is_call_to
from tvm_mxplan.passes.devices import TakeHints
from tvm_mxplan.passes.devices.crossings import place

GPU = "cuda"


@I.ir_module
class Stated:
    I.module_global_infos(
        {"vdevice": [I.vdevice({"kind": "llvm"}), I.vdevice({"kind": "cuda", "arch": "sm_90"})]}
    )

    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.hint_on_device(a, tvm.cuda(0))
            c = R.nn.relu(b)
            d = R.to_vdevice(c, "llvm")
            e = R.tanh(d)
            R.output(e)
        return e


@T.prim_func(s_tir=True)
def KERNEL(x: T.Buffer((4,), "float32")) -> None:
    T.evaluate(0)


def bindings(mod: tvm.IRModule) -> list[relax.Binding]:
    return [one for block in mod["main"].body.blocks for one in block.bindings]


def test_types_lose_their_devices_and_operators_say_them() -> None:
    taken = TakeHints(GPU)(Stated)
    stated = [device_of(one.value) for one in bindings(taken) if ON_DEVICE.is_called(one.value)]
    assert stated == [GPU, CPU]
    assert all(one.var.ty.vdevice is None for one in bindings(taken))
    assert not any(is_call_to(one.value, "hint_on_device", "to_vdevice") for one in bindings(taken))


def test_operators_around_a_hint_run_there_whatever_they_cost() -> None:
    taken = TakeHints(GPU)(Stated)
    placed = place(taken["main"], GPU, lambda *_: {CPU: 0.0, GPU: 1e6}, lambda nbytes: 1e3)
    by_kind = {one.value.op.name.removeprefix("relax."): placed[one.var] for one in bindings(taken)}
    assert by_kind["exp"] == by_kind["nn.relu"] == GPU
    assert by_kind["tanh"] == CPU


def test_a_module_without_devices_is_left_alone() -> None:
    plain = tvm.IRModule({"main": TakeHints(GPU)(Stated)["main"]})
    assert TakeHints(GPU)(plain) == plain


def test_results_and_what_is_outside_of_dataflow_stay_so() -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(relax.op.exp(x), "a")
            b = builder.emit_output(relax.op.hint_on_device(a, tvm.cpu(0)), "b")
        c = builder.emit(relax.op.tanh(b), "c")
        builder.emit_func_output(c)
    mod = builder.get()
    mod.update_global_info("vdevice", list(Stated.global_infos["vdevice"]))
    after = TakeHints(GPU)(mod)["main"]
    kinds = [[(one.var.name, type(one.var)) for one in block.bindings] for block in after.body.blocks]
    assert kinds == [[("a", relax.DataflowVar), ("b", tvm.ir.Var)], [("c", tvm.ir.Var)]]
    (_, hint), _ = (block.bindings if len(block.bindings) == 2 else (None,) for block in after.body.blocks)
    assert device_of(hint.value) == CPU and not is_moved(hint.value)


def test_operands_and_types_that_calls_state_lose_their_devices() -> None:
    where = Stated.global_infos["vdevice"][1]
    there = relax.TensorType((4, 8), "float32", where)
    x, y = relax.Var("x", there), relax.Var("y", there)
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        a = builder.emit(relax.call_dps_packed("f", relax.Tuple([x, y]), there), "a")
        moved = builder.emit(relax.op.to_vdevice(a, where), "moved")
        builder.emit_func_output(moved)
    mod = builder.get()
    mod.update_global_info("vdevice", list(Stated.global_infos["vdevice"]))
    before = mod["main"]
    after = TakeHints(GPU)(mod)
    function = after["main"]
    assert mod["main"].same_as(before)
    assert [one.ty.vdevice for one in function.params] == [None, None]
    assert [one.name for one in function.params] == ["x", "y"] and function.ret_ty.vdevice is None
    call, move = (one.value for one in bindings(after))
    assert call.ty_args[0].vdevice is None
    assert list(call.args[1].fields) == list(function.params)
    assert device_of(move) == GPU and is_moved(move)
    assert function.is_pure == before.is_pure
    assert function.attrs["global_symbol"] == "main"


def test_every_function_is_rewritten_and_kernels_stay() -> None:
    mod = Stated.clone()
    mod.update_func(relax.GlobalVar("other"), Stated["main"].with_attr("global_symbol", "other"))
    mod.update_func(relax.GlobalVar("kernel"), KERNEL)
    after = TakeHints(GPU)(mod)
    assert after["kernel"].same_as(mod["kernel"])
    for name in ("main", "other"):
        values = [one.value for block in after[name].body.blocks for one in block.bindings]
        assert sum(ON_DEVICE.is_called(value) for value in values) == 2
