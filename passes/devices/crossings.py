"""The devices of a function's bindings, such that work and copies take least together.

    x: CPU   take (5 us here, 7 there)   conv (900 here, 20 there)   y: CPU
             table of 200 MB             rows of 3 KB

    take on the CPU, conv on the GPU: the rows cross, not the table

It is the assignment problem that layouts are chosen by (``core/assignment``), solved exactly: a device is the
form of a tensor, a copy its conversion, made once however many read it.  Parameters, constants and results
are the CPU's.

Left to others: what bindings take on either (device_times), and the copies themselves (place_tensors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import tvm
from tvm import relax

from tvm_mxplan.core.assignment import AssignmentProblem, Option, solve_assignment
from tvm_mxplan.core.element_types import dense_bytes
from tvm_mxplan.core.program.specialize import typical_shape
from tvm_mxplan.operators.on_device import ON_DEVICE, device_of, is_moved

from ..annotations import CPU
from ..relax_types import dtype_of, is_constant, shape_of

Times = Callable[[tvm.ir.Var, relax.Expr], Mapping[str, float]]
"""Microseconds of a binding by the devices that can run it."""


def place(
    function: relax.Function, device: str, times: Times, copying_us: Callable[[int], float]
) -> dict[tvm.ir.Var, str]:
    """The device of each binding outside of branches, those of ``If`` as a whole.

    Parameters
    ----------
    copying_us : of so many bytes, from one to the other.
    """
    problem = _Problem(device, copying_us)
    problem.given([*function.params, *_constants(function)])
    bindings = [one for block in function.body.blocks for one in block.bindings]
    hints = _hints(bindings)
    for binding in bindings:
        cast = isinstance(binding, relax.MatchCast)
        known = {CPU: 0.0} if cast else times(binding.var, binding.value)
        wanted = hints.get(binding.var, "")
        if ON_DEVICE.is_called(binding.value) or wanted in known:
            known = {wanted: 0.0}
        problem.add(binding.var, tensors_read(binding.value), known)
    problem.wanted(tensors_read(function.body.body))
    return dict(zip((one.var for one in bindings), problem.solved(), strict=True))


def _hints(bindings: list[relax.Binding]) -> dict[tvm.ir.Var, str]:
    """Devices that the module states: of ``on_device``, what reads it, what makes a hint's operand."""
    stated = {one.var: device_of(one.value) for one in bindings if ON_DEVICE.is_called(one.value)}
    hinted = [one for one in bindings if one.var in stated and not is_moved(one.value)]
    made = {one.value.args[0]: stated[one.var] for one in hinted}
    read = {
        one.var: stated[operand]
        for one in bindings
        for operand in tensors_read(one.value)
        if operand in stated
    }
    return {**read, **made, **stated}


@dataclass
class _Problem:
    """The assignment problem, as it grows."""

    device: str
    copying_us: Callable[[int], float]
    numbers: dict[relax.Expr, int] = field(default_factory=dict)
    steps: list[tuple[tuple[str, Option], ...]] = field(default_factory=list)
    conversions: dict[tuple[int, str], float] = field(default_factory=dict)

    def given(self, values: list[relax.Expr]) -> None:
        forms = tuple((self._number(value), CPU) for value in values)
        self.steps.append(((CPU, Option(0.0, (), forms)),))

    def wanted(self, values: list[relax.Expr]) -> None:
        self.steps.append(((CPU, Option(0.0, self._forms(values, CPU), ())),))

    def add(self, variable: tvm.ir.Var, reads: list[relax.Expr], times: Mapping[str, float]) -> None:
        number = self._number(variable)
        options = tuple(
            (where, Option(us, self._forms(reads, where), ((number, where),))) for where, us in times.items()
        )
        self.steps.append(options)

    def solved(self) -> list[str]:
        """Devices of all that was added, in its order."""
        options = tuple(tuple(option for _, option in step) for step in self.steps)
        chosen = solve_assignment(AssignmentProblem(options, self.conversions)).choices
        return [step[choice][0] for step, choice in zip(self.steps, chosen, strict=True)][1:-1]

    def _forms(self, values: list[relax.Expr], where: str) -> tuple[tuple[int, str], ...]:
        return tuple(dict.fromkeys((self._number(value), where) for value in values))

    def _number(self, value: relax.Expr) -> int:
        if value not in self.numbers:
            number = self.numbers[value] = len(self.numbers)
            nbytes = bytes_of(value)
            if nbytes is not None:
                us = self.copying_us(nbytes)
                self.conversions |= {(number, CPU): us, (number, self.device): us}
        return self.numbers[value]


def tensors_read(value: relax.Expr) -> list[relax.Expr]:
    """Variables and constants that an expression reads, those that hold no tensor left out."""
    if isinstance(value, relax.Function | relax.If):
        return [one for one in relax.analysis.free_vars(value) if holds_tensors(one.ty)]
    found: dict[relax.Expr, None] = {}

    def visit(expr: relax.Expr) -> None:
        local = isinstance(expr, tvm.ir.Var) and not isinstance(expr, tvm.ir.GlobalVar)
        if (local or is_constant(expr)) and holds_tensors(expr.ty):
            found.setdefault(expr)

    relax.analysis.post_order_visit(value, visit)
    return list(found)


def bytes_of(value: relax.Expr) -> int | None:
    """Bytes of a tensor, at plausible numbers for symbols; None for what is none, or of unknown shape."""
    if not isinstance(value.ty, relax.TensorType):
        return None
    shape = shape_of(value)
    return None if shape is None else dense_bytes(typical_shape(shape), dtype_of(value))


def moved_bytes(variable: tvm.ir.Var, value: relax.Expr) -> int:
    """Bytes that an operator reads and writes, as far as they are known."""
    touched = [*tensors_read(value), *_fields(variable)]
    return sum(bytes_of(one) or 0 for one in touched)


def _fields(variable: tvm.ir.Var) -> list[relax.Expr]:
    if isinstance(variable.ty, tvm.ir.TupleType):
        return [relax.Var("field", one) for one in variable.ty.fields]
    return [variable]


def holds_tensors(kind: tvm.ir.Type) -> bool:
    if isinstance(kind, tvm.ir.TupleType):
        return any(holds_tensors(one) for one in kind.fields)
    return isinstance(kind, relax.TensorType)


def _constants(function: relax.Function) -> list[relax.Expr]:
    return [
        one
        for block in function.body.blocks
        for binding in block.bindings
        for one in tensors_read(binding.value)
        if is_constant(one)
    ]
