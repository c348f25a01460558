"""``TargetKernels``: kernels of tensors on a device say so, those of the CPU say nothing."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax, te, topi

from tvm_mxplan.errors import InternalError
from tvm_mxplan.passes.kernels.target_kernels import TargetKernels

CUDA = tvm.target.Target({"kind": "cuda", "arch": "sm_90"})
THERE = relax.VDevice(CUDA, 0, "global")
SHAPE = (4, 8)


def kernel(name: str) -> tvm.tirx.PrimFunc:
    x = te.placeholder(SHAPE, "float32", name="x")
    return te.create_prim_func([x, topi.exp(x)]).with_attr("global_symbol", name)


def module(*calls: tuple[str, bool], pairs: bool = False) -> tvm.IRModule:
    """A function of calls of kernels, each with its result on the device or not."""
    builder = relax.BlockBuilder()
    kernels = {name: builder.add_func(kernel(name), name) for name in dict(calls)}
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        y: relax.Expr = x
        for name, there in calls:
            one = relax.TensorType(SHAPE, "float32", THERE if there else None)
            kind = tvm.ir.TupleType([relax.TensorType(SHAPE, "float32"), one]) if pairs else one
            op = tvm.ir.Op.get("relax.call_tir")
            y = builder.emit(relax.Call(op, [kernels[name], relax.Tuple([x])], ty_args=[kind]))
        builder.emit_func_output(y)
    return builder.get()


def targets(mod: tvm.IRModule) -> dict[str, object]:
    return {
        gvar.name_hint: function.attrs.get("target")
        for gvar, function in mod.functions.items()
        if not isinstance(function, relax.Function)
    }


@pytest.mark.parametrize("pairs", [False, True])
def test_kernels_of_the_device_say_so(pairs: bool) -> None:
    before = module(("here", False), ("there", True), ("there", True), pairs=pairs)
    after = TargetKernels(CUDA)(before)
    assert targets(after) == {"here": None, "there": CUDA}
    assert targets(before) == {"here": None, "there": None}, "the module that was handed over stays"
    tvm.ir.assert_structural_equal(after["main"], before["main"])


def test_a_kernel_that_nobody_calls_says_nothing() -> None:
    before = module(("there", True))
    before["idle"] = kernel("idle")
    assert targets(TargetKernels(CUDA)(before)) == {"there": CUDA, "idle": None}


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_one_kernel_on_two_devices_is_a_mistake_of_ours(order: tuple[bool, bool]) -> None:
    with pytest.raises((InternalError, tvm.error.InternalError), match="both: one kernel on two devices"):
        TargetKernels(CUDA)(module(*(("both", there) for there in order)))
