"""``OrderBindings``: the bindings of dataflow blocks in the order of smaller peak.

Before   a = call_tir(f, x); b = call_tir(g, x); c = call_tir(h, a); d = call_tir(h, b); ...
After    a = call_tir(f, x); c = call_tir(h, a); b = call_tir(g, x); d = call_tir(h, b); ...

For modules as TVM's fusion leaves them, before blocks are given up: what is in a dataflow block has no
effects, so any order is legal that has definitions before uses.  Bindings that make no tensor (tuples, views,
constants) take no bytes; what the block hands out is not counted, for it mostly leaves the function.  Blocks
that define shapes (``match_cast``) or write into operands stay as they are.

Left to others: the decision (core.ordering), whether the plan gets smaller by it (``smaller_order``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import tvm
from tvm import relax

from tvm_mxplan.core.allocation.alignment import ALIGNMENT
from tvm_mxplan.core.ordering import Graph, Tensor, choose_order

from ..canonicalize.rewriter import is_call_to
from .region_calls import regions_of
from .relax_sizes import Bounds
from .storage_plan import plan_storage

_CALLS = ("call_tir", "call_dps_packed")


@tvm.transform.module_pass(opt_level=0, name="OrderBindings")
class OrderBindings:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return order_bindings(mod)


def order_bindings(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with its bindings in a better order; the same object if there is none."""
    ordered = {
        gvar: _ordered_function(function)
        for gvar, function in mod.functions.items()
        if isinstance(function, relax.Function)
    }
    changed = {gvar: function for gvar, function in ordered.items() if function is not None}
    if changed:
        mod = mod.clone()
    for gvar, function in changed.items():
        mod.update_func(gvar, function)
    return mod


def smaller_order(mod: tvm.IRModule, lower: Callable[[tvm.IRModule], tvm.IRModule]) -> tvm.IRModule:
    """``lower(mod)``, or that of ``mod`` in another order where its plans take fewer bytes."""
    ordered = order_bindings(mod)
    lowered = lower(mod)
    if ordered is mod:
        return lowered
    other = lower(ordered)
    return other if _planned_bytes(other) < _planned_bytes(lowered) else lowered


def _planned_bytes(lowered: tvm.IRModule) -> int:
    regions = regions_of(lowered)
    return sum(
        plan_storage(lowered, gvar, regions=regions).plan.height
        for gvar, function in lowered.functions.items()
        if isinstance(function, relax.Function)
    )


def _ordered_function(function: relax.Function) -> relax.Function | None:
    """The function in another order; None if there is no better one."""
    bounds = Bounds.of(function)
    blocks = list(function.body.blocks)
    changed = False
    for at, block in enumerate(blocks):
        if isinstance(block, relax.DataflowBlock) and _is_free(block):
            bindings = list(block.bindings)
            order = choose_order(_graph(bindings, bounds)).steps
            if order != tuple(range(len(order))):
                blocks[at] = relax.DataflowBlock([bindings[step] for step in order], block.span)
                changed = True
    if not changed:
        return None
    body = relax.SeqExpr(blocks, function.body.body)
    return relax.Function(
        function.params, body, function.ret_ty, function.is_pure, function.attrs, function.span
    )


def _is_free(block: relax.DataflowBlock) -> bool:
    """True if definitions and uses are all that its order has to keep."""
    return not any(
        isinstance(binding, relax.MatchCast) or is_call_to(binding.value, "call_tir_inplace")
        for binding in block.bindings
    )


def _graph(bindings: list[relax.Binding], bounds: Bounds) -> Graph:
    """A tensor for each binding that makes one; whoever reads a view of it reads it."""
    makers: dict[tvm.ir.Var, set[int]] = {}
    readers: dict[int, set[int]] = defaultdict(set)
    before: set[tuple[int, int]] = set()
    places: dict[tvm.ir.Var, int] = {}
    sizes: dict[int, int] = {}
    for at, binding in enumerate(bindings):
        used = [var for var in relax.analysis.free_vars(binding.value) if var in places]
        before |= {(places[var], at) for var in used}
        made = set().union(*(makers[var] for var in used))
        for maker in made:
            readers[maker].add(at)
        makes = is_call_to(binding.value, *_CALLS)
        if makes and isinstance(binding.var, relax.DataflowVar):
            sizes[at] = _bytes_of(binding.value, bounds)
        makers[binding.var] = {at} if makes else made
        places[binding.var] = at
    tensors = [Tensor(nbytes, at, tuple(sorted(readers[at]))) for at, nbytes in sizes.items()]
    return Graph(len(bindings), tuple(tensors), (0,) * len(bindings), tuple(sorted(before)))


def _bytes_of(call: tvm.ir.Call, bounds: Bounds) -> int:
    """Bytes of all results; 0 for those of unknown size."""
    (result,) = call.ty_args
    total = 0
    for tensor in result.fields if isinstance(result, tvm.ir.TupleType) else [result]:
        known = isinstance(tensor.shape, relax.ShapeExpr)
        size = bounds.size_of(tensor.shape.values, str(tensor.dtype)) if known else None
        total += 0 if size is None else -(-size.nbytes // ALIGNMENT) * ALIGNMENT
    return total
