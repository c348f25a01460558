"""``InfiniteFills``: tensors that are infinity, or no number, everywhere.

Before   m = R.full((n, n), -inf)           TVM 0.27's lowering of it ends in an error, as masks have it
After    m = R.call_tir(filled, ())         a kernel that writes the number
"""

from __future__ import annotations

import math

import tvm
from tvm import relax, te, tirx

from ..canonicalize.rewriter import is_call_to
from ..relax_types import is_arithmetic, scalar_of


@tvm.transform.module_pass(opt_level=0, name="InfiniteFills")
class InfiniteFills:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        rewriter = _Rewriter(mod)
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function):
                rewriter.builder_.update_func(gvar, rewriter.visit_expr(function))
        return rewriter.builder_.get()


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if is_arithmetic(call):
            return call
        call = self.visit_expr_post_order(call)
        if not is_call_to(call, "full", "full_like"):
            return call
        number, shape = scalar_of(call.args[1]), call.ty.shape
        if number is None or math.isfinite(number) or not isinstance(shape, relax.ShapeExpr):
            return call
        return self.builder_.call_te(
            _filled, list(shape.values), number, str(call.ty.dtype), primfunc_name_hint="filled"
        )


def _filled(shape: list[tirx.Expr], number: float, dtype: str) -> te.Tensor:
    return te.compute(shape, lambda *_: tirx.const(number, dtype), "filled")
