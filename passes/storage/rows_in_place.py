"""Rows that a function keeps from call to call are written where they stand.

Before   alloc = R.builtin.alloc_tensor(R.shape([1, 12, 1024, 64]), ...)
         mxplan_onednn_0(ids, cache, filled, logits, alloc);  return logits, alloc
After    mxplan_onednn_0(ids, cache, filled, logits, cache);  return logits, cache

``NoteRowsInPlace`` finds, while regions have programs, those states of a function (``frontend/states.py``)
that attention makes: a step that writes new rows alone where both are the same memory, of an input that
nobody else reads.  ``RowsInPlace`` hands the input over as the result, once results are allocated.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention.caches import STATES

from ..canonicalize.rewriter import is_call_to, reads_of
from ..region.attached import carries_program, program_of

IN_PLACE = "mxplan.in_place"
"""Attribute of a function: pairs of an input and a result that may stand in its memory, by their numbers."""


@tvm.transform.module_pass(opt_level=0, name="NoteRowsInPlace")
class NoteRowsInPlace:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function) and function.attrs and STATES in function.attrs:
                pairs = [[int(at) for at in pair] for pair in function.attrs[STATES]]
                found = [pair for pair in pairs if _is_in_place(mod, function, *pair)]
                mod = mod.clone()
                mod[gvar] = function.with_attr(IN_PLACE, tvm_ffi.convert(found))
        return mod


def _is_in_place(mod: tvm.IRModule, function: relax.Function, given: int, result: int) -> bool:
    """Whether one region makes the result of the input, which it alone reads, row by row, for nobody else."""
    values = dict(relax.analysis.get_var2val(function).items())
    items = [_item(expr, values) for expr in _results(function, values)]
    item = items[result]
    if item is None or reads_of(function)[function.params[given]] != 1:
        return False
    call, number = item
    if sum(one is not None and one[0].same_as(call) and one[1] == number for one in items) > 1:
        return False  # a result that the caller may keep is the same tensor
    region = mod.functions.get(call.op) if isinstance(call.op, tvm.ir.GlobalVar) else None
    if region is None or not carries_program(region):
        return False
    taken = [at for at, arg in enumerate(_tensors(call)) if arg.same_as(function.params[given])]
    program = program_of(region)
    return len(taken) == 1 and _puts_rows(program, taken[0], number)


def _puts_rows(program: ir.Program, given: int, result: int) -> bool:
    """Whether one step reads an input as its cache and writes a result as that with new rows, both alike."""
    cache, made = program.of_kind("input")[given], program.of_kind("output")[result]
    readers = [step for step in program.steps if cache in [program.root(value) for value in step.reads()]]
    if len(readers) != 1 or not isinstance(readers[0].attrs, ir.Attention):
        return False
    roles = {operand.role: operand.value for operand in readers[0].operands}
    return "filled" in roles and any(
        _whole(program, roles[f"past_{role}"], cache) and _whole(program, roles[f"joined_{role}"], made)
        for role in ("key", "value")
    )


def _whole(program: ir.Program, value: int, base: int) -> bool:
    """Whether a value is all of another one, of the caller's, as that stands."""
    seen, stands = program.values[value], program.values[base]
    alike = (seen.shape, seen.layout, seen.dtype) == (stands.shape, stands.layout, stands.dtype)
    return alike and program.root(value) == base and seen.alias_offset == 0


def _results(function: relax.Function, values: Mapping[tvm.ir.Var, relax.Expr]) -> list[relax.Expr]:
    made = _followed(function.body.body, values)
    return list(made.fields) if isinstance(made, relax.Tuple) else [function.body.body]


def _followed(expr: relax.Expr, values: Mapping[tvm.ir.Var, relax.Expr]) -> relax.Expr:
    """The expression behind variables, and behind items of tuples that are made."""
    while True:
        if isinstance(expr, tvm.ir.Var) and expr in values:
            expr = values[expr]
        elif isinstance(expr, tvm.ir.TupleGetItem):
            whole = _followed(expr.tuple_value, values)
            if not isinstance(whole, relax.Tuple):
                return expr
            expr = whole.fields[int(expr.index)]
        else:
            return expr


def _item(expr: relax.Expr, values: Mapping[tvm.ir.Var, relax.Expr]) -> tuple[relax.Call, int] | None:
    """The call that gives an expression, and the number of its result that it is."""
    found, number = _followed(expr, values), 0
    if isinstance(found, tvm.ir.TupleGetItem):
        found, number = _followed(found.tuple_value, values), int(found.index)
    return (found, number) if isinstance(found, relax.Call) else None


def _tensors(call: relax.Call) -> list[relax.Expr]:
    return [arg for arg in call.args if isinstance(arg.ty, relax.TensorType)]


@tvm.transform.module_pass(opt_level=0, name="RowsInPlace")
class RowsInPlace:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        for gvar, function in list(mod.functions.items()):
            pairs = function.attrs[IN_PLACE] if function.attrs and IN_PLACE in function.attrs else []
            if not len(pairs):
                continue
            values = dict(relax.analysis.get_var2val(function).items())
            results = _results(function, values)
            stands = {}
            for given, result in pairs:
                allocated = _allocation(results[int(result)], values)
                if allocated is not None:
                    stands[allocated] = function.params[int(given)]
            mod = mod.clone()
            mod[gvar] = _InPlace(stands).visit_expr(function)
        return mod


def _allocation(expr: relax.Expr, values: Mapping[tvm.ir.Var, relax.Expr]) -> tvm.ir.Var | None:
    """The variable of the allocation that an expression is another name of."""
    while isinstance(expr, tvm.ir.Var) and expr in values:
        value = values[expr]
        if is_call_to(value, "builtin.alloc_tensor"):
            return expr
        if isinstance(value, tvm.ir.TupleGetItem):
            whole = _followed(value.tuple_value, values)
            if not isinstance(whole, relax.Tuple):
                return None
            value = whole.fields[int(value.index)]
        expr = value
    return None


@relax.expr_functor.mutator
class _InPlace(relax.PyExprMutator):
    """Leaves allocations out, and reads parameters in their place."""

    def __init__(self, stands: Mapping[tvm.ir.Var, tvm.ir.Var]) -> None:
        super().__init__()
        self.stands = stands

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var not in self.stands:
            super().visit_var_binding_(binding)

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.stands[var] if var in self.stands else super().visit_var_(var)
