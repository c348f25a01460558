"""Estimated times of an operator on the CPU and on the device beside it.

    CPU      what TVM's kernel takes (``costs/kept_times``), or where a library takes it the roofline of the
             machine's rates, if that is less
    device   starting a kernel, and the roofline of its rates

Devices of one function are compared by these, so both sides leave out what they cannot know: fusion, and how
near to the roofline a kernel comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program.specialize import typical_shape
from tvm_mxplan.errors import last_line

from ..annotations import CPU
from ..costs import multiply_adds
from ..costs.kept_times import SHAPES, SURE, VIEWS, kept_times, kind_of
from ..relax_types import dtype_of, operator_name
from .crossings import holds_tensors, moved_bytes
from .sides import Beside

_TVM_SHARE = 0.1
"""Of a device's arithmetic, what TVM's kernels of products reach; a library's reach five times that."""
_LIBRARY_SHARE = 0.5


@dataclass(frozen=True)
class DeviceTimes:
    """Times of one function's bindings; see the module's text.

    Attributes
    ----------
    kept : TVM's on the CPU, by the variable of the result.
    taken : operators that libraries take, by device.
    """

    beside: Beside
    machine: MachineRates
    kept: Mapping[tvm.ir.Var, float | None]
    taken: Mapping[str, Collection[str]]

    @classmethod
    def of(
        cls,
        mod: tvm.IRModule,
        function: relax.Function,
        beside: Beside,
        machine: MachineRates,
        taken: Mapping[str, Collection[str]],
    ) -> DeviceTimes:
        kept = kept_times(mod, function, machine.threads, machine)
        return cls(beside, machine, kept, taken)

    def __call__(self, variable: tvm.ir.Var, value: relax.Expr) -> Mapping[str, float]:
        """Microseconds by device; without the device where it cannot run the binding."""
        if not isinstance(value, relax.Call):
            inside = isinstance(value, relax.If | relax.Function)
            return {CPU: 0.0} if inside else {CPU: 0.0, self.beside.name: 0.0}
        if not is_operator(value) or kind_of(value) in SHAPES:
            return {CPU: 0.0}
        name = operator_name(value) or ""
        by_library = name in self.taken.get(self.beside.name, ())
        if not by_library and not runs_on_device(value, self.beside):
            return {CPU: 0.0}
        if kind_of(value) in VIEWS:
            return {CPU: 0.0, self.beside.name: 0.0}
        here, there = self._here(variable, value, name), self._there(variable, value, by_library)
        if self.beside.preferred:
            return {CPU: SURE * here, self.beside.name: there}
        return {CPU: here, self.beside.name: SURE * there}

    def _here(self, variable: tvm.ir.Var, value: relax.Call, name: str) -> float:
        kept = self.kept.get(variable)
        bound = self._roofline(variable, value, self.machine, _LIBRARY_SHARE) + self.machine.start_us
        if kept is None:
            return bound
        return min(kept, bound) if name in self.taken.get(CPU, ()) else kept

    def _there(self, variable: tvm.ir.Var, value: relax.Call, by_library: bool) -> float:
        rates = self.beside.rates.machine
        share = _LIBRARY_SHARE if by_library else _TVM_SHARE
        return rates.start_us + self._roofline(variable, value, rates, share)

    @staticmethod
    def _roofline(variable: tvm.ir.Var, value: relax.Call, machine: MachineRates, share: float) -> float:
        products = multiply_adds.of_call(value, typical_shape)
        rate = share * machine.gflops(dtype_of(variable) or "float32")
        return max(machine.copying_us(moved_bytes(variable, value)), 2 * products / rate / 1e3)


def is_operator(value: relax.Expr) -> bool:
    """Whether a value is a call of an operator of Relax, and no kernel's or function's."""
    called = isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op)
    return called and not kind_of(value).startswith(("call_", "builtin.", "memory.", "vm."))


def runs_on_device(call: relax.Call, beside: Beside) -> bool:
    """Whether TVM's kernel for an operator can be had on the device: its type has to say where it is."""
    if not any(holds_tensors(arg.ty) for arg in call.args):
        return False
    there = relax.VDevice(beside.target, 0, "global")
    try:
        return _is_there(_type_there(call, there), there)
    except Exception:  # the pass notes it: failure_on_device
        return False


def failure_on_device(call: relax.Call, beside: Beside) -> str:
    """TVM's reason where it fails to type an operator with its operands on the device, else nothing."""
    try:
        _type_there(call, relax.VDevice(beside.target, 0, "global"))
    except Exception as error:  # inference says by many types what does not fit
        return last_line(error)
    return ""


def _type_there(call: relax.Call, there: relax.VDevice) -> tvm.ir.Type:
    """The type of an operator's result with its operands on a device."""

    def moved(expr: relax.Expr) -> relax.Expr:
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([moved(one) for one in expr.fields])
        return relax.Var("operand", type_on(expr.ty, there)) if holds_tensors(expr.ty) else expr

    args = [moved(arg) for arg in call.args]
    return relax.BlockBuilder().normalize(relax.Call(call.op, args, call.attrs, call.ty_args)).ty


def type_on(kind: tvm.ir.Type, there: relax.VDevice | None) -> tvm.ir.Type:
    """A type whose tensors are on a device; on the CPU with None."""
    if isinstance(kind, tvm.ir.TupleType):
        return tvm.ir.TupleType([type_on(one, there) for one in kind.fields])
    if not isinstance(kind, relax.TensorType):
        return kind
    shape = kind.shape
    if shape is None:
        return relax.TensorType(dtype=kind.dtype, vdevice=there, ndim=kind.ndim)
    return relax.TensorType(shape, kind.dtype, there)


def _is_there(kind: tvm.ir.Type, there: relax.VDevice) -> bool:
    if isinstance(kind, tvm.ir.TupleType):
        return all(_is_there(one, there) for one in kind.fields)
    if not isinstance(kind, relax.TensorType):
        return True
    return kind.vdevice is not None and kind.vdevice.target.kind.name == there.target.kind.name
