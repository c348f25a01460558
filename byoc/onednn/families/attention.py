"""Attention: a step of the runtime's own kernels.

Before   v3 = mxplan.attention(q, k, v)              heads in front of rows
After    v3 = attention(q, k, v), seen as [N, H, S, W]  heads behind rows, as all that follows wants them
"""

from __future__ import annotations

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention import attention_of
from tvm_mxplan.passes.relax_types import shape_of

from ..checks import Match, tensors_ok


def check(match: Match) -> str | None:
    """None, or the part of the operator that the runtime lacks."""
    reason = tensors_ok(match)
    if reason is not None:
        return reason
    heads = [shape_of(arg)[1] for arg in match["root"].args[:2]]  # type: ignore[index]
    if not all(isinstance(count, int) for count in heads):
        return "an unknown number of heads"
    return None


def translate(c: Composite) -> int:
    kind = attention_of(c.root)
    roles = ("src", "key", "value", "mask")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=False)]
    batch, heads, rows, width = c.shape
    attrs = ir.Attention(kind.scale, kind.causal, kind.nan_is_zero)
    dst = c.builder.step("attention", attrs, (batch, rows, heads, width), operands)
    return c.builder.permute(dst, (0, 2, 1, 3))
