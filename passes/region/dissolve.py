"""Giving regions back to TVM: their operators return to the functions that called them.

Before   lv = mxplan_onednn_0(x)          a region that the backend turned out not to take
After    lv = R.nn.conv2d(x, w); ...      as if it had never been partitioned
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tvm
from tvm import relax

from ..annotations import TVM, with_changed_dispatch
from ..relax_types import operator_name
from .inlining import without_calls

_STAND_IN = "mxplan.region"


class Dissolved(NamedTuple):
    """A module without some regions, and why their operators are TVM's: by kinds, and by their own names."""

    mod: tvm.IRModule
    refused: dict[str, str]


def dissolve(mod: tvm.IRModule, reasons: Mapping[tvm.ir.GlobalVar, str]) -> Dissolved:
    """The module without the regions named in ``reasons``."""
    refused: dict[str, str] = {}
    if not reasons:
        return Dissolved(mod, refused)
    mod = mod.clone()
    given_back: dict[str, str] = {}
    for gvar, reason in reasons.items():
        region = mod[gvar]
        calls = _operators(region)
        names = {name for call in calls if (name := operator_name(call))}
        refused |= dict.fromkeys({str(call.op.name) for call in calls} | names, reason)
        given_back |= dict.fromkeys(names, TVM)
        mod.update_func(gvar, region.without_attr("Codegen").without_attr("global_symbol"))
    mod = with_changed_dispatch(mod, given_back)
    # What is put inside a dataflow block cuts it in two where it has bindings outside of one, and TVM leaves
    # variables of the first half to be read in the second; so blocks are made when all is in its place.
    lift = [relax.transform.LambdaLift(), relax.transform.ToNonDataflow()]
    tidy = [
        relax.transform.Normalize(),
        relax.transform.ConvertToDataflow(1),
        relax.transform.CanonicalizeBindings(),
    ]
    mod, staying = _without_regions(mod)
    mod = _inlined(tvm.transform.Sequential(lift)(mod))
    mod = tvm.transform.Sequential(tidy)(mod)
    for name, region in staying.items():
        mod.update_func(mod.get_global_var(name), region)
    return Dissolved(mod, refused)


def _inlined(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with private functions in the places where they are called."""
    private = {
        gvar: function
        for gvar, function in mod.functions.items()
        if isinstance(function, relax.Function) and not (function.attrs and "global_symbol" in function.attrs)
    }
    mod = mod.clone()
    for gvar, function in list(mod.functions.items()):
        if gvar in private:
            del mod[gvar]
        elif isinstance(function, relax.Function):
            mod.update_func(gvar, without_calls(function, private))
    return mod


def _without_regions(mod: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, relax.Function]]:
    """The module with stand-ins for the regions that stay, and these by their names.

    A library may still have to make a program of what they consist of, so it must not be taken apart.
    """
    staying = {}
    for gvar, function in list(mod.functions.items()):
        if _is_region(function):
            staying[gvar.name_hint] = function
            mod.update_func(gvar, _stand_in(function))
    return mod, staying


def _stand_in(function: relax.Function) -> relax.Function:
    """A function of the same type that calls something unknown."""
    result = relax.Var("result", function.ret_ty)
    call = relax.call_pure_packed(_STAND_IN, *function.params, ty_args=function.ret_ty)
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(result, call)])], result)
    return relax.Function(
        function.params, body, function.ret_ty, function.is_pure, function.attrs, function.span
    )


def _is_region(function: tvm.ir.BaseFunc) -> bool:
    return isinstance(function, relax.Function) and bool(function.attrs and function.attrs.get("Codegen"))


def _operators(region: relax.Function) -> list[relax.Call]:
    calls: list[relax.Call] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            calls.append(expr)

    relax.analysis.post_order_visit(region, visit)
    return calls
