"""``SelfComparisons``: a number that is compared with itself, which is how models ask for NaN.

Before   y = R.not_equal(x, x)                TVM's simplifier makes "false" of it, NaN or not
After    y = R.isnan(x)

``equal`` becomes the opposite.  Integers and booleans stay as they are: there the simplifier is right.
"""

from __future__ import annotations

import tvm
from tvm import relax

from ..canonicalize.rewriter import is_call_to
from .replace_calls import replace_calls


@tvm.transform.module_pass(opt_level=0, name="SelfComparisons")
class SelfComparisons:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _asked)


def _asked(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if not is_call_to(call, "equal", "not_equal") or not call.args[0].same_as(call.args[1]):
        return None
    if "float" not in str(call.args[0].ty.dtype):
        return None
    nan = relax.op.isnan(call.args[0])
    return nan if is_call_to(call, "not_equal") else relax.op.logical_not(builder.emit(nan))
