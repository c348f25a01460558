"""Runs operators of the forward part of a step again for its backward part.

Before   a = relu(x);  l = loss(a);  g = gradient(l);  d = gate(a, g)             a waits for d
After    a = relu(x);  l = loss(a);  g = gradient(l);  e = mxplan.after(x, l);  b = relu(e);  d = gate(b, g)

``problem_of`` tells what the solver needs to know (``core/recomputation``), ``rewritten`` writes what it
chose.  Views go with what they are views of.  Every operator may run again: none has effects, and dropouts
drop the same elements for the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import tvm
import tvm_ffi
from tvm import relax

from ...core.element_types import dense_bytes
from ...core.recomputation import Operation, Problem, Run, Value
from ...errors import UnsupportedError
from ...operators.after import after
from ...operators.registration import numbers
from ...passes.origins import origins_of, with_origins
from ...passes.relax_types import RESHAPES

Microseconds = Callable[[relax.Call], float]
"""The estimated time of an operator."""


@dataclass
class Traced:
    """A function's operators as the solver's operations.

    Attributes
    ----------
    operations : the binding of each operation.
    parts : the values that a variable holds, by their places in a tuple.
    loss : the operation that makes the loss, the last of the forward part.
    """

    problem: Problem
    operations: list[relax.VarBinding]
    parts: dict[tvm.ir.Var, tuple[int, ...]] = field(default_factory=dict)
    loss: int = 0


def traced(function: relax.Function, time: Microseconds) -> Traced:
    """The operators of a step, whose first result is the loss.

    Raises
    ------
    UnsupportedError : the loss is made by no operator.
    """
    escaping = {var for part in _parts(function.body.body) for var in _variables(part)}
    found = Traced(Problem((), (), 0), [])
    operations: list[Operation] = []
    values: list[Value] = []
    for binding in bindings_of(function):
        reads = tuple(
            dict.fromkeys(part for var in _variables(binding.value) for part in found.parts.get(var, ()))
        )
        if not _is_operation(binding.value):
            found.parts[binding.var] = _seen(binding.value, found.parts)
            continue
        made = []
        for kind in _types(binding.var.ty):
            made.append(len(values))
            values.append(Value(len(operations), bytes_of(kind)))
        found.parts[binding.var] = tuple(made)
        found.operations.append(binding)
        operations.append(Operation(reads, time(binding.value)))
    # What the function returns stands outside of its arena.
    for var in escaping:
        for part in found.parts.get(var, ()):
            values[part] = Value(values[part].writer, 0)
    loss = [part for var in _variables(_parts(function.body.body)[0]) for part in found.parts.get(var, ())]
    if not loss:
        raise UnsupportedError("memory_budget: the loss is made by no operator; leave the option out")
    found.loss = values[loss[0]].writer
    found.problem = Problem(tuple(operations), tuple(values), found.loss + 1)
    return found


def rewritten(mod: tvm.IRModule, found: Traced, run: Run) -> tvm.IRModule:
    """The module whose ``main`` runs operators again as in ``run``."""
    function = mod["main"]
    at = {binding.var: place for place, binding in enumerate(found.operations)}
    everything = bindings_of(function)
    writer = _Writer(found, {binding.var: binding.value for binding in everything})
    again = iter(run.sequence)
    for binding in everything:
        if binding.var in at:
            for operation, is_again in again:
                if not is_again:
                    assert operation == at[binding.var], "operators run in another order"
                    break
                writer.run_again(operation)
        backward = binding.var in at and at[binding.var] >= found.problem.backward
        writer.copy(binding, backward=backward)
    blocks = [relax.DataflowBlock(writer.bindings)]
    changed = relax.Function(
        function.params,
        relax.SeqExpr(blocks, function.body.body),
        function.ret_ty,
        function.is_pure,
        function.attrs,
        function.span,
    )
    mod = mod.clone()
    mod.update_func(mod.get_global_var("main"), changed)
    return relax.transform.Normalize()(mod)


class _Writer:
    """Bindings as they are written: those of the function, and those that run again.

    Attributes
    ----------
    again : a variable as it was made last, where that was again.
    shown : a view, or part of a tuple, of such a one, and which it was made from.
    late : a variable behind the loss.
    """

    def __init__(self, found: Traced, made: dict[tvm.ir.Var, relax.Expr]) -> None:
        self.found, self.made = found, made
        self.bindings: list[relax.VarBinding] = []
        self.again: dict[tvm.ir.Var, tvm.ir.Var] = {}
        self.shown: dict[tvm.ir.Var, tuple[relax.Expr, tvm.ir.Var]] = {}
        self.late: dict[tvm.ir.Var, tvm.ir.Var] = {}
        self.event = found.operations[found.loss].var
        self.computed = {binding.var for binding in found.operations}

    def copy(self, binding: relax.VarBinding, *, backward: bool) -> None:
        """A binding of the function; one of the backward part reads what was made last."""
        value = self._replaced(binding.value, self._made_last) if backward else binding.value
        same = value.same_as(binding.value)
        self.bindings.append(binding if same else relax.VarBinding(binding.var, value))

    def run_again(self, operation: int) -> None:
        """An operator of the forward part, behind the loss."""
        binding = self.found.operations[operation]
        value = self._replaced(binding.value, self._as_operand)
        if isinstance(value, relax.Call):
            value = with_origins(value, origins_of(binding.value))
        self.again[binding.var] = self._emit(value, f"{binding.var.name}_again", binding.var.ty)

    def _emit(self, value: relax.Expr, name: str, kind: tvm.ir.Type) -> tvm.ir.Var:
        var = relax.DataflowVar(name, kind)
        self.bindings.append(relax.VarBinding(var, value))
        return var

    def _made_last(self, var: tvm.ir.Var) -> tvm.ir.Var:
        """A variable as the backward part reads it."""
        if var in self.again or var in self.computed or var not in self.made:
            return self.again.get(var, var)
        value = self._replaced(self.made[var], self._made_last)
        if value.same_as(self.made[var]):
            return var
        known = self.shown.get(var)
        if known is None or not tvm_ffi.structural_equal(known[0], value):
            self.shown[var] = known = value, self._emit(value, f"{var.name}_again", var.ty)
        return known[1]

    def _as_operand(self, var: tvm.ir.Var) -> relax.Expr:
        """A variable as an operator reads it that runs again: never before the loss is there."""
        last = self._made_last(var)
        if not last.same_as(var) or not isinstance(var.ty, relax.TensorType):
            return last
        if var not in self.late:
            self.late[var] = self._emit(after(var, self.event), f"{var.name}_late", var.ty)
        return self.late[var]

    def _replaced(self, expr: relax.Expr, put: Callable[[tvm.ir.Var], relax.Expr]) -> relax.Expr:
        if isinstance(expr, tvm.ir.Var):
            return put(expr)
        if isinstance(expr, relax.Tuple):
            fields = [self._replaced(one, put) for one in expr.fields]
            return expr if _same(fields, expr.fields) else relax.Tuple(fields)
        if isinstance(expr, relax.TupleGetItem):
            source = self._replaced(expr.tuple_value, put)
            return expr if source.same_as(expr.tuple_value) else relax.TupleGetItem(source, expr.index)
        if isinstance(expr, relax.Call):
            args = [self._replaced(arg, put) for arg in expr.args]
            if _same(args, expr.args):
                return expr
            return with_origins(relax.Call(expr.op, args, expr.attrs, expr.ty_args), origins_of(expr))
        return expr


def bindings_of(function: relax.Function) -> list[relax.VarBinding]:
    """The bindings of a step, which has one block."""
    return [binding for block in function.body.blocks for binding in block.bindings]


def _same(new: Sequence[relax.Expr], old: Sequence[relax.Expr]) -> bool:
    return all(one.same_as(other) for one, other in zip(new, old, strict=True))


def _is_operation(value: relax.Expr) -> bool:
    """Whether a binding computes something; views and parts of tuples do not."""
    if not isinstance(value, relax.Call):
        return False
    return not isinstance(value.op, tvm.ir.Op) or str(value.op.name).removeprefix("relax.") not in RESHAPES


def _seen(value: relax.Expr, parts: dict[tvm.ir.Var, tuple[int, ...]]) -> tuple[int, ...]:
    """The values that a view, a tuple or a part of one shows."""
    if isinstance(value, tvm.ir.Var):
        return parts.get(value, ())
    if isinstance(value, relax.TupleGetItem):
        source = _seen(value.tuple_value, parts)
        return source[value.index : value.index + 1] if _is_flat(value.tuple_value.ty) else source
    if isinstance(value, relax.Tuple):
        return tuple(part for one in value.fields for part in _seen(one, parts))
    if isinstance(value, relax.Call):
        return tuple(part for arg in value.args for part in _seen(arg, parts))
    return ()


def _is_flat(kind: tvm.ir.Type) -> bool:
    """Whether a tuple holds tensors alone, each of them one value."""
    return isinstance(kind, relax.TupleType) and all(isinstance(one, relax.TensorType) for one in kind.fields)


def _variables(expr: relax.Expr) -> Iterator[tvm.ir.Var]:
    """Variables that an expression reads."""
    if isinstance(expr, tvm.ir.Var):
        yield expr
    elif isinstance(expr, relax.Tuple):
        for one in expr.fields:
            yield from _variables(one)
    elif isinstance(expr, relax.TupleGetItem):
        yield from _variables(expr.tuple_value)
    elif isinstance(expr, relax.Call):
        for arg in expr.args:
            yield from _variables(arg)


def _parts(result: relax.Expr) -> list[relax.Expr]:
    return list(result.fields) if isinstance(result, relax.Tuple) else [result]


def _types(kind: tvm.ir.Type) -> list[relax.TensorType]:
    if isinstance(kind, relax.TupleType):
        return [one for field in kind.fields for one in _types(field)]
    return [kind] if isinstance(kind, relax.TensorType) else []


def bytes_of(kind: tvm.ir.Type) -> int:
    """Bytes of a tensor, or of all in a tuple."""
    return sum(dense_bytes(numbers(one.shape.values), str(one.dtype)) for one in _types(kind))
