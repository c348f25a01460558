"""Lending regions their arenas, so that a function has one: what a region needs is planned with the rest.

Before   lv = R.call_dps_packed("mxplan_onednn_0", (x,), out_ty=R.Tensor((1, 19, 32, 32)))
After    gv = R.call_dps_packed("mxplan_onednn_0", (x,),
                                out_ty=[R.Tensor((1, 19, 32, 32)), R.Tensor((143360,), "uint8")])
         lv = gv[0]

To the memory planner the arena is one more result, of the bytes that the region's own plan takes, that nobody
reads: it lives for this one call, and others may have its bytes before and after.

Of a model with a named batch all regions lend, since functions of one size after another share one arena.
Else a region that is called by functions without another call shares nothing: it keeps the arena of its
execution context, at one address from call to call and on huge pages. So do regions with symbolic shapes,
which are planned when they first see them.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

from ..canonicalize.rewriter import Site, callee, is_call_to, rewrite_bindings
from ..relax_types import RESHAPES
from ..sizes.named_batch import is_sized


def lend_arenas(mod: tvm.IRModule, arenas: Mapping[str, int]) -> tvm.IRModule:
    """The module with an arena behind the results of each region that shares a function with others.

    Parameters
    ----------
    arenas : bytes of each region's plan by the name it is called by; less than 1 where there is none.
    """
    sharing = _sharing_functions(mod)
    lent = {name: nbytes for name, nbytes in arenas.items() if nbytes > 0 and name in sharing}
    if not lent:
        return mod

    def lend(site: Site, value: relax.Expr) -> relax.Expr | None:
        nbytes = lent.get(callee(value), 0)
        if not nbytes:
            return None
        (result,) = value.ty_args
        results = list(result.fields) if isinstance(result, tvm.ir.TupleType) else [result]
        arena = relax.TensorType([nbytes], "uint8")
        call = relax.call_dps_packed(callee(value), value.args[1], [*results, arena])
        every = site.emit(call)
        if not isinstance(result, tvm.ir.TupleType):
            return tvm.ir.TupleGetItem(every, 0)
        return tvm.ir.Tuple([tvm.ir.TupleGetItem(every, at) for at in range(len(results))])

    return rewrite_bindings(mod, lend)


def _sharing_functions(mod: tvm.IRModule) -> set[str]:
    """External functions called by functions of the module that make more than one call."""
    found: set[str] = set()
    for function in mod.functions.values():
        calls: list[str] = []

        def visit(expr: relax.Expr, calls: list[str] = calls) -> None:
            if isinstance(expr, tvm.ir.Call) and not is_call_to(expr, *RESHAPES):
                calls.append(callee(expr))

        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
        if len(calls) > 1 or is_sized(function):
            found.update(calls)
    return found
