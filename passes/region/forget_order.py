"""``ForgetOrder``: values as they are, where they were to come after others.

Before   a = mxplan_onednn_0(x);  l = loss(a);  b = R.mxplan.after(a, l);  c = mxplan_onednn_1(b)
After    a = mxplan_onednn_0(x);  l = loss(a);  c = mxplan_onednn_1(a)

Once regions stand, the order of bindings alone says what comes when.
"""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.operators.after import AFTER

from ..canonicalize.rewriter import Site, rewrite_bindings


@tvm.transform.module_pass(opt_level=0, name="ForgetOrder")
class ForgetOrder:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        calls = False

        def visit(expr: relax.Expr) -> None:
            nonlocal calls
            calls = calls or AFTER.is_called(expr)

        for function in mod.functions.values():
            if isinstance(function, relax.Function):
                relax.analysis.post_order_visit(function, visit)
        return rewrite_bindings(mod, _as_it_is) if calls else mod


def _as_it_is(_site: Site, value: relax.Expr) -> relax.Expr | None:
    return value.args[0] if AFTER.is_called(value) else None
