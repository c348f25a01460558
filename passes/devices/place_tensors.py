"""``PlaceTensors``: tensors on two devices, and copies where they cross.

Before   lv = R.take(table, i)
         gv = R.call_dps_packed("mxplan_cudnn_0", (lv,), out_ty=R.Tensor((8, 5)))
After    lv = R.take(table, i)
         there = R.call_dps_packed("tvm_mxplan.devices.copy", (lv,), out_ty=R.Tensor((8, 16), "cuda:0"))
         gv = R.call_dps_packed("mxplan_cudnn_0", (there,), out_ty=R.Tensor((8, 5), "cuda:0"))
         here = R.call_dps_packed("tvm_mxplan.devices.copy", (gv,), out_ty=R.Tensor((8, 5)))

Regions run where their libraries do.  TVM's kernels go where work and copies take least together
(``crossings``).  Tensors of types without a device are the CPU's, which is the first of the VM's devices; so
are parameters, constants and results.  A copy is a call that writes into the function's arena on the other
device, and is made once, however many read it.

Left to others: TVM compiles a kernel for the device that its operands' types say; arenas (passes/storage).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import tvm
from tvm import relax

from tvm_mxplan.byoc import region_module
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.operators.on_device import ON_DEVICE

from ..annotations import CPU
from ..canonicalize.rewriter import callee
from ..sizes.named_batch import entries
from .crossings import place
from .device_times import DeviceTimes, type_on
from .sides import Beside

COPY = "tvm_mxplan.devices.copy"
_MODULES = "external_mods"


@tvm.transform.module_pass(opt_level=0, name="PlaceTensors")
class PlaceTensors:
    """Module pass; see the module's text.

    Parameters
    ----------
    beside : the device beside the CPU.
    machine : what the CPU can do.
    kinds : of runtime modules whose regions run on the device.
    """

    def __init__(self, beside: Beside, machine: MachineRates, kinds: Collection[str]) -> None:
        self.beside = beside
        self.machine = machine
        self.kinds = kinds

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        there = relax.VDevice(self.beside.target, 0, "global")
        here = relax.VDevice(tvm.target.Target(str(self.beside.target.host)), 0, "global")
        placed = {gvar: self._placed(mod, gvar) for gvar in entries(mod)}
        mod = mod.clone()
        mod.update_global_info("vdevice", [here, there])
        for gvar, devices in placed.items():
            mover = _Mover(mod, devices, self.beside.name, there)
            mod.update_func(gvar, mover.visit_expr(mod[gvar]))
        return mod

    def _placed(self, mod: tvm.IRModule, gvar: tvm.ir.GlobalVar) -> Mapping[tvm.ir.Var, str]:
        """The devices of the bindings of a function that calls begin with."""
        function, regions = mod[gvar], self._regions(mod)
        known = DeviceTimes.of(mod, function, self.beside, self.machine, {})

        def times(variable: tvm.ir.Var, value: relax.Expr) -> Mapping[str, float]:
            return {self.beside.name: 0.0} if callee(value) in regions else known(variable, value)

        return place(function, self.beside.name, times, self.beside.rates.copying_us)

    def _regions(self, mod: tvm.IRModule) -> set[str]:
        """Names of the regions that run on the device."""
        modules = list(mod.attrs[_MODULES]) if _MODULES in mod.attrs else []
        return {
            region_module.symbol_of(module)
            for module in modules
            if module.kind in self.kinds and region_module.carries_program(module)
        }


@relax.expr_functor.mutator
class _Mover(relax.PyExprMutator):
    """Writes a function anew with each binding on its device.

    Parameters
    ----------
    placed : devices of bindings; of all that is not in there the CPU.
    """

    def __init__(
        self, mod: tvm.IRModule, placed: Mapping[tvm.ir.Var, str], device: str, there: relax.VDevice
    ) -> None:
        super().__init__(mod)
        self.placed, self.device, self.there = placed, device, there
        self.now = CPU
        self.homes: dict[tvm.ir.Var, str] = {}
        self.values: dict[tvm.ir.Var, relax.Expr] = {}
        self.copies: dict[tuple[relax.Expr, str], tvm.ir.Var] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        self.now = self.placed.get(binding.var, CPU)
        if isinstance(binding.value, relax.Function | relax.If | relax.SeqExpr):
            for one in relax.analysis.free_vars(binding.value):
                self.values[one], self.homes[one] = self._on(one, CPU), CPU
            super().visit_var_binding_(binding)
            return
        value = self.visit_expr(binding.value)
        if ON_DEVICE.is_called(value):
            value = value.args[0]  # it is there
        if self.now != CPU and isinstance(value, relax.Call) and value.ty_args:
            kinds = [type_on(one, self.there) for one in value.ty_args]
            value = relax.Call(value.op, value.args, value.attrs, kinds, value.span)
        if isinstance(binding.var, relax.DataflowVar) or not self.builder_.current_block_is_dataflow():
            value = self.builder_.emit(value, name_hint=binding.var.name)
        else:
            value = self.builder_.emit_output(value, binding.var.name)
        self.values[binding.var], self.homes[binding.var] = value, self.now

    def visit_match_cast_(self, binding: relax.MatchCast) -> None:
        self.now = CPU
        super().visit_match_cast_(binding)

    def visit_seq_expr_(self, seq: relax.SeqExpr) -> relax.Expr:
        blocks = [self.visit_binding_block(block) for block in seq.blocks]
        self.now = CPU
        self.builder_._begin_binding_block()
        body = self.visit_expr(seq.body)
        behind = self.builder_._end_block()
        return relax.SeqExpr([*blocks, behind] if behind.bindings else blocks, body)

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self._on(var, self.now)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self._on(var, self.now)

    def visit_generic_const_(self, constant: tvm.ir.GenericConst) -> relax.Expr:
        return constant if self.now == CPU else self._copied(constant, constant, self.now)

    def _on(self, var: tvm.ir.Var, device: str) -> relax.Expr:
        value = self.values.get(var, var)
        if self.homes.get(var, CPU) == device or not isinstance(value.ty, relax.TensorType):
            return value
        return self._copied(var, value, device)

    def _copied(self, key: relax.Expr, value: relax.Expr, device: str) -> tvm.ir.Var:
        if (key, device) not in self.copies:
            kind = type_on(value.ty, None if device == CPU else self.there)
            call = relax.call_dps_packed(COPY, relax.Tuple([value]), kind)
            inside = isinstance(key, relax.DataflowVar) or not self.builder_.current_block_is_dataflow()
            emit = self.builder_.emit if inside else self.builder_.emit_output
            self.copies[key, device] = emit(call, name_hint="copied")
        return self.copies[key, device]
