"""``WideSums``: TVM's own products of 16 bits add up in float32, as those of libraries do.

Before   y = R.matmul(x, w)                                                     all of float16
After    a = R.matmul(x, w, out_dtype="float32");  y = R.astype(a, "float16")

For targets on which ``NarrowProducts`` has run; what regions hold is no part of the function any more.
"""

from __future__ import annotations

import tvm
from tvm import relax

from ..canonicalize.narrow_operators import NARROW, WIDE
from ..canonicalize.narrow_products import PRODUCTS, with_result_in
from ..canonicalize.rewriter import Site, is_call_to, rewrite_bindings
from ..relax_types import dtype_of


@tvm.transform.module_pass(opt_level=0, name="WideSums")
class WideSums:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    dtype = dtype_of(value)
    if not is_call_to(value, *PRODUCTS) or dtype not in NARROW:
        return None
    if any(dtype_of(operand) != dtype for operand in value.args):
        return None
    wide = relax.Call(value.op, value.args, with_result_in(value.attrs, WIDE), value.ty_args)
    return relax.op.astype(site.emit(wide), dtype)
