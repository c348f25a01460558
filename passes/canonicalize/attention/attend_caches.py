"""``AttendCaches``: attention on rows that are kept from call to call, and on new ones, as one operator.

Before   keys1 = R.mxplan.put_rows(keys, k, filled);  values1 = R.mxplan.put_rows(values, v, filled)
         y = R.mxplan.attention(q, keys1[:, :, :count], values1[:, :, :count], mask)
After    y, keys1, values1 = R.mxplan.cached_attention(q, k, v, keys, values, filled, mask)

The rows that count, ``count``, are those that were there and the new ones; the slices say so, as they were
made with the caches (``frontend/states.py``).  Slices that something else reads as well stay as they are.

A mask with a column for each of them gets one for each row of the caches, zeros behind: its shape is one for
all lengths then, and a region that reads it makes nothing anew when a cache grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.operators.attention import NAME, attention_of
from tvm_mxplan.operators.attention.caches import PUT_ROWS, cached_attention, put_rows

from ...relax_types import dim_of, dtype_of, shape_of
from ..rewriter import is_call_to, reads_of

_ROWS = 2
"""The axis of rows."""


@dataclass(frozen=True)
class _Joined:
    """Keys or values behind a cache: the slice that attention reads, and the cache that it is cut from."""

    piece: tvm.ir.Var
    whole: tvm.ir.Var
    call: relax.Call


@tvm.transform.module_pass(opt_level=0, name="AttendCaches")
class AttendCaches:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function):
                found = _found(function)
                if found:
                    mod.update_func(gvar, _Attending(mod, found).visit_expr(function))
        return mod


def _found(function: relax.Function) -> dict[tvm.ir.Var, tuple[_Joined, _Joined]]:
    """Keys and values behind caches, by the variable of the attention that reads them."""
    values = dict(relax.analysis.get_var2val(function).items())
    reads = reads_of(function)
    found: dict[tvm.ir.Var, tuple[_Joined, _Joined]] = {}
    for variable, value in values.items():
        if not is_call_to(value, NAME.removeprefix("relax.")):
            continue
        keys, held = (_joined(arg, values, reads) for arg in value.args[1:3])
        if keys and held and keys.call.args[2].same_as(held.call.args[2]):
            found[variable] = (keys, held)
    return found


def _joined(
    piece: relax.Expr, values: Mapping[tvm.ir.Var, relax.Expr], reads: Counter[tvm.ir.Var]
) -> _Joined | None:
    cut = values.get(piece)
    if cut is None or not is_call_to(cut, "strided_slice") or reads[piece] != 1:
        return None
    whole = cut.args[0]
    call = values.get(whole)
    if call is None or not PUT_ROWS.is_called(call) or int(call.attrs["axis"]) != _ROWS:
        return None
    taken, given = shape_of(piece), shape_of(whole)
    if taken is None or given is None:
        return None
    if any(a != b for axis, (a, b) in enumerate(zip(taken, given, strict=True)) if axis != _ROWS):
        return None
    # The caller reads the cache, and nobody else.
    return _Joined(piece, whole, call) if reads[whole] == 2 and _begins_at_once(cut) else None


def _begins_at_once(cut: relax.Call) -> bool:
    """Whether a slice takes rows from the first one on, each of them."""
    _, _, begin, _, *strides = cut.args
    return all(dim_of(dim) == 0 for dim in begin.fields) and all(
        dim_of(dim) == 1 for one in strides for dim in one.fields
    )


@relax.expr_functor.mutator
class _Attending(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, found: Mapping[tvm.ir.Var, tuple[_Joined, _Joined]]) -> None:
        super().__init__(mod)
        self.found = found
        self.masks: dict[relax.Expr, relax.Expr] = {}
        self.moved = {var for pair in found.values() for one in pair for var in (one.piece, one.whole)}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var in self.moved:
            return
        pair = self.found.get(binding.var)
        if pair is None:
            super().visit_var_binding_(binding)
            return
        query, _key, _value, *masks = binding.value.args
        rows = tuple(one.call.args[1] for one in pair)
        caches = tuple(one.call.args[0] for one in pair)
        masks = [self._as_wide(mask, caches[0]) for mask in masks]
        call = cached_attention(
            attention_of(binding.value), (query, *rows), caches, pair[0].call.args[2], *masks
        )
        every = self.builder_.emit(self.visit_expr(call))
        for at, variable in enumerate((binding.var, *(one.whole for one in pair))):
            item = self.builder_.normalize(tvm.ir.TupleGetItem(every, at))
            self.builder_.emit_normalized(relax.VarBinding(variable, item))

    def _as_wide(self, mask: relax.Expr, cache: relax.Expr) -> relax.Expr:
        """The mask with a column for each row of a cache, where how many it has is no number."""
        *lead, columns = mask.ty.shape.values
        if isinstance(dim_of(columns), int):
            return mask
        if mask not in self.masks:
            zeros = relax.op.zeros(relax.ShapeExpr([*lead, cache.ty.shape.values[_ROWS]]), dtype_of(mask))
            start = relax.const([0], "int32")
            put = put_rows(self.builder_.emit(zeros), self.visit_expr(mask), start, len(lead))
            self.masks[mask] = self.builder_.emit(put)
        return self.masks[mask]
