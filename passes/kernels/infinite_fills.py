"""``InfiniteFills``: tensors that are infinity, or no number, everywhere.

Before   m = R.full((n, n), -inf)           TVM 0.27's lowering of it ends in an error, as masks have it
After    m = R.call_tir(filled, ())         a kernel that writes the number
"""

from __future__ import annotations

import math

import tvm
from tvm import relax, te, tirx

from ..canonicalize.rewriter import is_call_to
from ..relax_types import scalar_of
from .replace_calls import replace_calls


@tvm.transform.module_pass(opt_level=0, name="InfiniteFills")
class InfiniteFills:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _fill)


def _fill(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if not is_call_to(call, "full", "full_like"):
        return None
    number, shape = scalar_of(call.args[1]), call.ty.shape
    if number is None or math.isfinite(number) or not isinstance(shape, relax.ShapeExpr):
        return None
    dtype = str(call.ty.dtype)
    return builder.call_te(_filled, list(shape.values), number, dtype, primfunc_name_hint="filled")


def _filled(shape: list[tirx.Expr], number: float, dtype: str) -> te.Tensor:
    return te.compute(shape, lambda *_: tirx.const(number, dtype), "filled")
