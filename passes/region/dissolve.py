"""Giving regions back to TVM: their operators return to the functions that called them.

Before   lv = mxplan_onednn_0(x)          a region that the backend turned out not to take
After    lv = R.nn.conv2d(x, w); ...      as if it had never been partitioned
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Rejections


def dissolve(
    mod: tvm.IRModule, reasons: Mapping[tvm.ir.GlobalVar, str], rejections: Rejections
) -> tvm.IRModule:
    """The module without the regions named in ``reasons``; their operators are noted as rejected."""
    if not reasons:
        return mod
    mod = mod.clone()
    for gvar, reason in reasons.items():
        region = mod[gvar]
        for name in _operators(region):
            rejections[name] = reason
        mod.update_func(gvar, region.without_attr("Codegen").without_attr("global_symbol"))
    return tvm.transform.Sequential(
        [
            relax.transform.LambdaLift(),
            relax.transform.InlinePrivateFunctions(),
            relax.transform.CanonicalizeBindings(),
        ]
    )(mod)


def _operators(region: relax.Function) -> set[str]:
    names: set[str] = set()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            names.add(expr.op.name)

    relax.analysis.post_order_visit(region, visit)
    return names
