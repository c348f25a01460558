"""``TargetKernels``: the device of each kernel on the kernel, by what its calls say.

Before   y = R.call_tir(fused_sin, (x,), out_ty=R.Tensor((4, 8), "float32", "cuda:0"))
After    fused_sin has the attribute target of that device

TVM's fusion leaves the attribute out that its kernels had, and what has none is compiled for the CPU.
"""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.errors import InternalError

from ..canonicalize.rewriter import is_call_to


@tvm.transform.module_pass(opt_level=0, name="TargetKernels")
class TargetKernels:
    """Module pass; ``target`` is that of the device beside the CPU."""

    def __init__(self, target: tvm.target.Target) -> None:
        self.target = target

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        there: dict[tvm.ir.GlobalVar, bool] = {}

        def visit(expr: relax.Expr) -> None:
            if is_call_to(expr, "call_tir", "call_tir_inplace"):
                kernel, placed = expr.args[0], _is_placed(expr.ty)
                if there.setdefault(kernel, placed) != placed:
                    raise InternalError(f"{kernel.name_hint}: one kernel on two devices")

        for function in mod.functions.values():
            if isinstance(function, relax.Function):
                relax.analysis.post_order_visit(function, visit)
        mod = mod.clone()
        for kernel, placed in there.items():
            if placed:
                mod.update_func(kernel, mod[kernel].with_attr("target", self.target))
        return mod


def _is_placed(kind: tvm.ir.Type) -> bool:
    """Whether tensors of a type are on the device: those of the CPU say nothing."""
    if isinstance(kind, tvm.ir.TupleType):
        return any(_is_placed(one) for one in kind.fields)
    return isinstance(kind, relax.TensorType) and kind.vdevice is not None
