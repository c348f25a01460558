"""``PartitionRegions``: group the composites that libraries take into regions.

Before   gv = fused_relax_nn_relu(fused_relax_add(fused_relax_nn_conv2d(x, w), b))
After    gv = mxplan_onednn_0(x)      a function with the attribute Codegen, which calls the composites

Which composites there are, and of which library, is what ``DispatchOperators`` decided.  TVM's own
``MergeCompositeFunctions`` does the work; regions get short names.  It knows no function but ``main``, so
each function of the module takes its turn under that name.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import tvm
from tvm import relax

from tvm_mxplan.errors import InvalidInputError

from .contents import with_contents
from .stand_ins import hide, reveal


@tvm.transform.module_pass(opt_level=0, name="PartitionRegions")
class PartitionRegions:
    """Module pass; see the module's text.

    Parameters
    ----------
    leaders : code generators of libraries whose composites may stand in regions of others, with those that
        lead such regions.  Where a region has nothing of its leader, it is the others' own.
    """

    def __init__(self, leaders: Mapping[str, str] = MappingProxyType({})) -> None:
        self.leaders = leaders

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        """Composites grouped into regions in every Relax function, by the functions' names."""
        composites = {gvar for gvar, function in mod.functions.items() if _is_composite(function)}
        merged = mod.clone()
        for gvar in composites:
            del merged[gvar]
        names = _Names({gvar.name_hint for gvar in merged.functions})
        mod = _under_leaders(mod, self.leaders)
        for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
            if gvar not in composites and isinstance(function, relax.Function):
                called = _called(function)
                used = [_called(mod[callee]) for callee in called if callee in composites]
                if used:
                    called = list(dict.fromkeys([*called, *itertools.chain(*used)]))
                    found = _with_regions(mod, gvar, called, names)
                    merged.update(tvm.IRModule(found.regions))
                    merged.update_func(gvar, found.function)
        return merged


def _under_leaders(mod: tvm.IRModule, leaders: Mapping[str, str]) -> tvm.IRModule:
    """The module with the composites of guests, ``guest.row``, as ``leader.guest.row``.

    What is in front of the first dot is what TVM groups by.
    """
    mod = mod.clone()
    for gvar, function in list(mod.functions.items()):
        leader = (
            leaders.get(str(function.attrs["Composite"]).partition(".")[0])
            if _is_composite(function)
            else None
        )
        if leader is not None:
            mod.update_func(gvar, function.with_attr("Composite", f"{leader}.{function.attrs['Composite']}"))
    return mod


def _with_owners(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with regions that have composites of guests of one library alone as that library's.

    Each says what is in it, for who looks whether it was changed.
    """
    for gvar, function in list(mod.functions.items()):
        if _codegen(function):
            owners = {name.split(".")[-2] for name in _composites(function)}
            if len(owners) == 1:
                function = function.with_attr("Codegen", owners.pop())
            mod.update_func(gvar, with_contents(function))
    return mod


def _composites(region: relax.Function) -> list[str]:
    """The names of the composites that a region consists of."""
    found: list[str] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Function) and _is_composite(expr):
            found.append(str(expr.attrs["Composite"]))

    relax.analysis.post_order_visit(region, visit)
    return found


class _Names:
    """Short, stable names for regions, ``<code generator>_<number>``, that nothing in a module has."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._numbers: Counter[str] = Counter()

    def fresh(self, codegen: str) -> str:
        while True:
            name = f"{codegen}_{self._numbers[codegen]}"
            self._numbers[codegen] += 1
            if name not in self._taken:
                return name


def _is_composite(function: tvm.ir.BaseFunc) -> bool:
    return bool(function.attrs and function.attrs.get("Composite"))


def _codegen(function: tvm.ir.BaseFunc) -> str:
    """The code generator of a region, '' for all other functions."""
    return str(function.attrs.get("Codegen") or "") if function.attrs else ""


def _called(function: relax.Function) -> list[tvm.ir.GlobalVar]:
    """Lists the functions that the function refers to, each once, in the order of first use."""
    found: dict[tvm.ir.GlobalVar, None] = {}

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GlobalVar):
            found.setdefault(expr)

    relax.analysis.post_order_visit(function, visit)
    return list(found)


class _Partitioned(NamedTuple):
    """A function that calls regions in the place of composites, and those regions."""

    function: relax.Function
    regions: dict[tvm.ir.GlobalVar, relax.Function]


def _with_regions(
    mod: tvm.IRModule, gvar: tvm.ir.GlobalVar, called: list[tvm.ir.GlobalVar], names: _Names
) -> _Partitioned:
    """One function of ``mod``, partitioned."""
    alone, originals = _alone_as_main(mod, gvar, called)
    alone, hidden = hide(alone, alone.get_global_var("main"))
    merged = relax.transform.MergeCompositeFunctions()(alone)
    _check_taken(merged, gvar)
    alone = _rename(_with_owners(merged), names)
    regions = {region: body for region, body in alone.functions.items() if _codegen(body)}
    replacer = _GlobalReplacer(alone)
    replacer.new = originals
    function = replacer.visit_expr(reveal(alone["main"], hidden)).without_attr("global_symbol")
    symbol = mod[gvar].attrs.get("global_symbol") if mod[gvar].attrs else None
    return _Partitioned(function.with_attr("global_symbol", symbol) if symbol else function, regions)


def _check_taken(merged: tvm.IRModule, gvar: tvm.ir.GlobalVar) -> None:
    """Raises InvalidInputError for a composite that no region took, as nobody would generate code for it."""
    for callee in _called(merged["main"]):
        if _is_composite(merged[callee]):
            raise InvalidInputError(
                f"function {gvar.name_hint}: {callee.name_hint} stands outside of a dataflow block, where no "
                "region can take it; was a pass run behind DispatchOperators that dissolves these blocks?"
            )


def _alone_as_main(
    mod: tvm.IRModule, gvar: tvm.ir.GlobalVar, called: list[tvm.ir.GlobalVar]
) -> tuple[tvm.IRModule, dict[tvm.ir.GlobalVar, tvm.ir.GlobalVar]]:
    """A module in which the function is ``main`` and other functions cannot be looked into.

    Also the originals of the names by which it calls those others.
    """
    others = [g for g in called if isinstance(mod[g], relax.Function) and not _is_composite(mod[g])]
    kept = {g: mod[g] for g in called if g not in set(others)}
    replacer = _GlobalReplacer(tvm.IRModule(kept))
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

    def module(self) -> tvm.IRModule:
        return self.builder_.get()


def _rename(mod: tvm.IRModule, names: _Names) -> tvm.IRModule:
    """``main`` and its regions alone under short names, in place of all the fused operators in a row.

    A region has its composites inside; whatever else they call is in the module that they come from.
    """
    main = mod["main"]
    regions = [gvar for gvar in _called(main) if _codegen(mod[gvar])]
    replacer = _GlobalReplacer(tvm.IRModule())
    for gvar in regions:
        replacer.new[gvar] = replacer.add(mod[gvar], names.fresh(_codegen(mod[gvar])))
    renamed = replacer.visit_expr(main)
    module = replacer.module()
    module["main"] = renamed
    return module
