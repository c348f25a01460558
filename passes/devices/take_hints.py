"""``TakeHints``: what a module says of devices, in a form that other passes hand on.

Before   x: R.Tensor((4, 8), "float32", "cuda:0")     y = R.hint_on_device(h, tvm.cpu(0))
After    x: R.Tensor((4, 8), "float32")               y = R.mxplan.on_device(h, "llvm")

Types lose their devices, which passes that rewrite operators would not keep: a tensor that has to be on one
goes through an operator that says so, and ``to_vdevice`` becomes the same.  An operator whose result is
hinted, and those that read it, run there where they can, of a result that is moved those that read it
(``crossings``); others run as costs have it.  TVM's ``RealizeVDevice`` hands hints on further.
"""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.operators.on_device import on_device

from ..annotations import CPU
from ..canonicalize.rewriter import is_call_to
from .device_times import type_on


@tvm.transform.module_pass(opt_level=0, name="TakeHints")
class TakeHints:
    """Module pass; ``device`` is the one beside the CPU, by the kind of TVM's target."""

    def __init__(self, device: str) -> None:
        self.device = device

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        if "vdevice" not in mod.global_infos:
            return mod
        mod = mod.clone()
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function):
                taken = _Taker(mod, self.device).visit_expr(function)
                mod.update_func(gvar, taken)
        return mod


@relax.expr_functor.mutator
class _Taker(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, device: str) -> None:
        super().__init__(mod)
        self.device = device
        self.values: dict[tvm.ir.Var, relax.Expr] = {}

    def visit_function_(self, function: relax.Function) -> relax.Function:
        for one in function.params:
            self.values[one] = relax.Var(one.name, type_on(one.ty, None))
        body = self.visit_expr(function.body)
        params = [self.values[one] for one in function.params]
        return relax.Function(params, body, None, function.is_pure, function.attrs, function.span)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        value = self.visit_expr(binding.value)
        inside = isinstance(binding.var, relax.DataflowVar) or not self.builder_.current_block_is_dataflow()
        emit = self.builder_.emit if inside else self.builder_.emit_output
        self.values[binding.var] = emit(value, binding.var.name)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        args = [self.visit_expr(one) for one in call.args]
        if is_call_to(call, "hint_on_device", "to_vdevice"):
            moved = is_call_to(call, "to_vdevice")
            here = str(call.attrs.dst_vdevice.target.kind.name) == CPU if moved else _hints_cpu(call)
            return on_device(args[0], CPU if here else self.device, moved=moved)
        kinds = [type_on(one, None) for one in call.ty_args]
        return relax.Call(call.op, args, call.attrs, kinds, call.span)

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.values.get(var, var)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self.values.get(var, var)


def _hints_cpu(call: relax.Call) -> bool:
    """Whether a hint means the CPU, by the number that DLPack gives it."""
    return int(call.attrs.device_type) == 1
