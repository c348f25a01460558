"""Attention: a step of the runtime's own kernels.

Before   v3 = mxplan.attention(q, k, v)              heads in front of rows
After    v3 = attention(q, k, v), seen as [N, H, S, W]  heads behind rows, as all that follows wants them
"""

from __future__ import annotations

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention import attention_of
from tvm_mxplan.passes.relax_types import dtype_of, shape_of

from ..checks import DTYPES, Match, tensors_ok


def check(match: Match) -> str | None:
    """None, or the part of the operator that the runtime lacks."""
    reason = tensors_ok(match)
    if reason is not None:
        return reason
    heads = [shape_of(arg)[1] for arg in match["root"].args[:2]]  # type: ignore[index]
    if not all(isinstance(count, int) for count in heads):
        return "an unknown number of heads"
    return None


def check_cached(match: Match) -> str | None:
    """The same of attention on caches, whose count of rows is no real number."""
    call = match["root"]
    shapes = [shape_of(arg) for arg in call.args]
    if None in shapes:
        return "a shape that is not known at compile time"
    other = next((dtype_of(arg) for arg in call.args if dtype_of(arg) not in (*DTYPES, "int32")), None)
    if other is not None:
        return f"element type {other}, oneDNN takes {', '.join(DTYPES)} here"
    if any(0 in shape for shape in shapes):  # type: ignore[operator]
        return "an empty tensor"
    if not all(isinstance(shape[1], int) for shape in shapes[:2]):  # type: ignore[index]
        return "an unknown number of heads"
    return None


def translate_cached(c: Composite) -> tuple[int, ...]:
    """The step, its result and the caches; see ``translate``."""
    kind = attention_of(c.root)
    roles = ("src", "key", "value", "past_key", "past_value", "filled", "mask")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=False)]
    (batch, heads, rows, _), (*_, width) = (shape_of(c.root.args[at]) for at in (0, 2))  # type: ignore[misc]
    results = {"dst": (batch, rows, heads, width)}
    results |= {f"joined_{role}": shape_of(c.root.args[at]) for at, role in ((3, "key"), (4, "value"))}
    attrs = ir.Attention(kind.scale, kind.causal, kind.nan_is_zero)
    dst, *caches = c.builder.step_of_several("attention", attrs, operands, results)
    return (c.builder.permute(dst, (0, 2, 1, 3)), *caches)


def translate(c: Composite) -> int:
    kind = attention_of(c.root)
    roles = ("src", "key", "value", "mask")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=False)]
    batch, heads, rows, width = c.shape
    attrs = ir.Attention(kind.scale, kind.causal, kind.nan_is_zero)
    dst = c.builder.step("attention", attrs, (batch, rows, heads, width), operands)
    return c.builder.permute(dst, (0, 2, 1, 3))
