"""Devices that a Relax module states: operators that other passes hand on, and that placing goes by."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from tvm_mxplan.operators.on_device import ON_DEVICE, device_of
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
