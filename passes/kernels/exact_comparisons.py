"""``ExactComparisons``: comparisons of which TVM's kernels make something else, in other words.

Before   y = R.not_equal(x, x)     of real numbers, which asks for NaN: TVM's simplifier makes "false" of it
After    y = R.isnan(x)

Before   y = R.not_equal(a, b)     of real numbers: TVM's kernel says that NaN differs from nothing
After    y = R.logical_not(R.equal(a, b))

Before   y = R.equal(a, b)         of booleans: LLVM may be asked to compare them as real numbers, and ends
After    y = R.logical_not(R.logical_xor(a, b))
"""

from __future__ import annotations

import tvm
from tvm import relax

from ..canonicalize.rewriter import is_call_to
from .replace_calls import replace_calls


@tvm.transform.module_pass(opt_level=0, name="ExactComparisons")
class ExactComparisons:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _in_other_words)


def _in_other_words(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if not is_call_to(call, "equal", "not_equal"):
        return None
    left, right = call.args
    dtype = str(left.ty.dtype)
    if dtype == "bool":
        differ = relax.op.logical_xor(left, right)
    elif "float" in dtype and left.same_as(right):
        differ = relax.op.isnan(left)
    elif "float" in dtype and is_call_to(call, "not_equal"):
        return relax.op.logical_not(builder.emit(relax.op.equal(left, right)))
    else:
        return None
    return differ if is_call_to(call, "not_equal") else relax.op.logical_not(builder.emit(differ))
