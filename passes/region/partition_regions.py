"""``PartitionRegions``: group what a backend takes into regions.

Before   gv = R.nn.relu(R.add(R.nn.conv2d(x, w), b))
After    gv = mxplan_onednn_0(x)      a function with the attribute Codegen, one composite for each operator

TVM's own ``FuseOpsByPattern`` and ``MergeCompositeFunctions`` do the work; regions get short names.  The
latter knows no function but ``main``, so each function of the module takes its turn under that name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend, Rejections

from ..relax_types import OPERATOR, operator_name
from .attached import regions
from .outline_blocks import calls_any

_ROOT = "the whole pattern"
_SWITCHED_OFF = "switched off by option: "


@tvm.transform.module_pass(opt_level=0, name="PartitionRegions")
class PartitionRegions:
    """Module pass; see the module's text.

    Parameters
    ----------
    backend : the library to partition for.
    rejections : filled with the reasons for which operators were refused.
    switched_off : names of operators that TVM keeps whatever the library can do.
    """

    def __init__(
        self, backend: Backend, rejections: Rejections | None = None, switched_off: Collection[str] = ()
    ) -> None:
        self.backend = backend
        self.switched_off = switched_off
        self.rejections = {} if rejections is None else rejections

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        patterns = self.backend.patterns(self.rejections)
        patterns = [self._for_named_operators(pattern) for pattern in patterns]
        mod = relax.transform.FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False)(mod)
        return _merge(mod, self.backend.name)

    def _for_named_operators(self, pattern: relax.transform.FusionPattern) -> relax.transform.FusionPattern:
        """The pattern, which leaves what is switched off and writes the root's name on the composite."""

        def check(context: relax.transform.PatternCheckContext) -> bool:
            for call in context.matched_bindings.values():
                if operator_name(call) in self.switched_off:
                    self.rejections[call.op.name] = _switched_off(self.rejections.get(call.op.name, ""), call)
                    return False
            return bool(pattern.check(context))

        def attributes(matched: Mapping[str, relax.Expr]) -> dict[str, object]:
            own = dict(pattern.attrs_getter(matched)) if pattern.attrs_getter else {}
            name = operator_name(matched[_ROOT])
            # Without it, equal composites would become one function under one name.
            return {**own, OPERATOR: name} if name else own

        named = {**dict(pattern.annotation_patterns), _ROOT: pattern.pattern}
        return relax.transform.FusionPattern(pattern.name, pattern.pattern, named, check, attributes)


def _merge(mod: tvm.IRModule, backend: str) -> tvm.IRModule:
    """Composites grouped into regions in every Relax function, by the functions' names."""
    merged = mod.clone()
    composites = {gvar for gvar, function in mod.functions.items() if _is_composite(function)}
    for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
        if gvar in composites:
            del merged[gvar]
        elif isinstance(function, relax.Function) and calls_any(function, composites):
            _merge_in_function(merged, mod, gvar, backend)
    return merged


def _is_composite(function: tvm.ir.BaseFunc) -> bool:
    return bool(function.attrs and function.attrs.get("Composite"))


def _merge_in_function(merged: tvm.IRModule, mod: tvm.IRModule, gvar: tvm.ir.GlobalVar, backend: str) -> None:
    """Put into ``merged`` one function of ``mod`` with regions in the place of its composites."""
    alone, originals = _alone_as_main(mod, gvar)
    alone = relax.transform.MergeCompositeFunctions()(alone)
    alone = _rename(alone, backend, {other.name_hint for other in merged.functions})
    for region, body in regions(alone, backend):
        merged[region] = body
    replacer = _GlobalReplacer(alone)
    replacer.new = originals
    function = replacer.visit_expr(alone["main"]).without_attr("global_symbol")
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


def _switched_off(so_far: str, call: relax.Call) -> str:
    """The reason for which a kind of operator is left, with the name of one more that is switched off."""
    names = so_far.removeprefix(_SWITCHED_OFF).split(", ") if so_far.startswith(_SWITCHED_OFF) else []
    return _SWITCHED_OFF + ", ".join(dict.fromkeys([*names, str(operator_name(call))]))


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


def _rename(mod: tvm.IRModule, backend: str, taken: set[str]) -> tvm.IRModule:
    """Short, stable names, ``<backend>_<number>``, in place of all the fused operators in a row."""
    replacer = _GlobalReplacer(mod)
    number = 0
    for gvar in _in_order_of_use(mod, backend):
        while f"{backend}_{number}" in taken:
            number += 1
        replacer.new[gvar] = replacer.add(mod[gvar], f"{backend}_{number}")
        number += 1
    for gvar, function in list(mod.functions.items()):
        if isinstance(function, relax.Function) and gvar not in replacer.new:
            replacer.replace_in(gvar, function)
    mod = replacer.module()
    for gvar in replacer.new:
        del mod[gvar]
    return mod


def _in_order_of_use(mod: tvm.IRModule, backend: str) -> list[tvm.ir.GlobalVar]:
    found = dict(regions(mod, backend))
    order: list[tvm.ir.GlobalVar] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GlobalVar) and expr in found and expr not in order:
            order.append(expr)

    for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
        if isinstance(function, relax.Function) and gvar not in found:
            relax.analysis.post_order_visit(function, visit)
    return order
