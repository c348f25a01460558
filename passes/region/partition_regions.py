"""``PartitionRegions``: group the composites that libraries take into regions.

Before   gv = fused_relax_nn_relu(fused_relax_add(fused_relax_nn_conv2d(x, w), b))
After    gv = mxplan_onednn_0(x)      a function with the attribute Codegen, which calls the composites

Which composites there are, and of which library, is what ``DispatchOperators`` decided.  TVM's own
``MergeCompositeFunctions`` does the work; regions get short names.  It knows no function but ``main``, so
each function of the module takes its turn under that name.
"""

from __future__ import annotations

from collections import Counter

import tvm
from tvm import relax

from .outline_blocks import calls_any
from .stand_ins import hide, reveal


@tvm.transform.module_pass(opt_level=0, name="PartitionRegions")
class PartitionRegions:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        """Composites grouped into regions in every Relax function, by the functions' names."""
        composites = {gvar for gvar, function in mod.functions.items() if _is_composite(function)}
        merged = mod.clone()
        for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
            if gvar in composites:
                del merged[gvar]
            elif isinstance(function, relax.Function) and calls_any(function, composites):
                _merge_in_function(merged, mod, gvar)
        return merged


def _is_composite(function: tvm.ir.BaseFunc) -> bool:
    return bool(function.attrs and function.attrs.get("Composite"))


def _codegen(function: tvm.ir.BaseFunc) -> str:
    """The code generator of a region, '' for all other functions."""
    return str(function.attrs.get("Codegen") or "") if function.attrs else ""


def _merge_in_function(merged: tvm.IRModule, mod: tvm.IRModule, gvar: tvm.ir.GlobalVar) -> None:
    """Put into ``merged`` one function of ``mod`` with regions in the place of its composites."""
    alone, originals = _alone_as_main(mod, gvar)
    alone, hidden = hide(alone, alone.get_global_var("main"))
    alone = relax.transform.MergeCompositeFunctions()(alone)
    alone = _rename(alone, {other.name_hint for other in merged.functions})
    for region, body in alone.functions.items():
        if _codegen(body):
            merged[region] = body
    replacer = _GlobalReplacer(alone)
    replacer.new = originals
    function = replacer.visit_expr(reveal(alone["main"], hidden)).without_attr("global_symbol")
    symbol = mod[gvar].attrs.get("global_symbol") if mod[gvar].attrs else None
    merged.update_func(gvar, function.with_attr("global_symbol", symbol) if symbol else function)


def _alone_as_main(
    mod: tvm.IRModule, gvar: tvm.ir.GlobalVar
) -> tuple[tvm.IRModule, dict[tvm.ir.GlobalVar, tvm.ir.GlobalVar]]:
    """A module in which the function is ``main`` and other functions cannot be looked into.

    Also the originals of the names by which it calls those others.
    """
    others = [g for g, f in mod.functions.items() if isinstance(f, relax.Function) and not _is_composite(f)]
    replacer = _GlobalReplacer(tvm.IRModule({g: f for g, f in mod.functions.items() if g not in others}))
    for other in others:
        opaque = mod[other].without_attr("Codegen").with_attr("Primitive", True)
        replacer.new[other] = replacer.add(opaque, f"{other.name_hint}.original")
    main = replacer.visit_expr(mod[gvar])
    alone = replacer.module()
    alone["main"] = main.with_attr("global_symbol", "main")
    return alone, {stand_in: other for other, stand_in in replacer.new.items()}


@relax.expr_functor.mutator
class _GlobalReplacer(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.new: dict[tvm.ir.GlobalVar, tvm.ir.GlobalVar] = {}

    def add(self, function: relax.Function, name: str) -> tvm.ir.GlobalVar:
        return self.builder_.add_func(function.with_attr("global_symbol", name), name)

    def visit_global_var_(self, gvar: tvm.ir.GlobalVar) -> tvm.ir.GlobalVar:
        return self.new.get(gvar, gvar)

    def replace_in(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        self.builder_.update_func(gvar, self.visit_expr(function))

    def module(self) -> tvm.IRModule:
        return self.builder_.get()


def _rename(mod: tvm.IRModule, taken: set[str]) -> tvm.IRModule:
    """Short, stable names, ``<code generator>_<number>``, in place of all the fused operators in a row."""
    replacer = _GlobalReplacer(mod)
    numbers: Counter[str] = Counter()
    for gvar in _in_order_of_use(mod):
        codegen = _codegen(mod[gvar])
        while f"{codegen}_{numbers[codegen]}" in taken:
            numbers[codegen] += 1
        replacer.new[gvar] = replacer.add(mod[gvar], f"{codegen}_{numbers[codegen]}")
        numbers[codegen] += 1
    for gvar, function in list(mod.functions.items()):
        if isinstance(function, relax.Function) and gvar not in replacer.new:
            replacer.replace_in(gvar, function)
    mod = replacer.module()
    for gvar in replacer.new:
        del mod[gvar]
    return mod


def _in_order_of_use(mod: tvm.IRModule) -> list[tvm.ir.GlobalVar]:
    found = {gvar for gvar, function in mod.functions.items() if _codegen(function)}
    order: list[tvm.ir.GlobalVar] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GlobalVar) and expr in found and expr not in order:
            order.append(expr)

    for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
        if isinstance(function, relax.Function) and gvar not in found:
            relax.analysis.post_order_visit(function, visit)
    return order
