"""``TrustedIndices``: reads by indices that are in bounds, without TVM's warning of those that are not.

Before   y = R.take(x, i, axis=1)           "fast": TVM prints a warning for each of them as it is lowered
After    y = R.call_tir(take, (x, i))       the kernel that TVM makes of it, and nothing printed

Indices that vary are checked by then, where the module checks any (``CheckIndices``).
"""

from __future__ import annotations

import tvm
from tvm import relax, te

from ..canonicalize.rewriter import is_call_to
from .replace_calls import replace_calls


@tvm.transform.module_pass(opt_level=0, name="TrustedIndices")
class TrustedIndices:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _take)


def _take(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if not is_call_to(call, "take") or str(call.attrs.mode) != "fast":
        return None
    data, indices = call.args
    if not all(isinstance(one.ty.shape, relax.ShapeExpr) for one in call.args):
        return None
    rank = len(data.ty.shape.values)
    if call.attrs.axis is None and rank != 1:
        return None
    axis = int(call.attrs.axis or 0) % rank
    return builder.call_te(_taken, data, indices, axis, primfunc_name_hint="take")


def _taken(data: te.Tensor, indices: te.Tensor, axis: int) -> te.Tensor:
    behind = axis + len(indices.shape)
    shape = [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]]
    return te.compute(shape, lambda *at: data(*at[:axis], indices(*at[axis:behind]), *at[behind:]), "T_take")
