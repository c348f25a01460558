"""Attention: a step of the runtime's own kernels.

Before   v3 = mxplan.attention(q, k, v)              heads in front of rows
After    v3 = attention(q, k, v), seen as [N, H, S, W]  heads behind rows, as all that follows wants them
"""

from __future__ import annotations

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.operators.attention import attention_of
from tvm_mxplan.passes.relax_types import shape_of

from ..checks import Match, tensors_ok

_FILLED = 5
"""The place of the count of rows among the operands."""


def check(match: Match) -> str | None:
    """None, or the part of the operator that the runtime lacks."""
    return tensors_ok(match) or _heads_ok(match)


def check_cached(match: Match) -> str | None:
    """The same of attention on caches, whose count of rows is no real number."""
    return tensors_ok(match, but=match["root"].args[_FILLED]) or _heads_ok(match)


def _heads_ok(match: Match) -> str | None:
    heads = [shape_of(arg)[1] for arg in match["root"].args[:2]]  # type: ignore[index]
    return None if all(isinstance(count, int) for count in heads) else "an unknown number of heads"


def translate_cached(c: Composite) -> tuple[int, ...]:
    """The step, its result and the caches; see ``translate``."""
    roles = ("src", "key", "value", "past_key", "past_value", "filled", "mask")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=False)]
    given = [(role.removeprefix("past_"), value) for role, value in operands if role.startswith("past_")]
    (batch, heads, rows, _), (*_, width) = (shape_of(c.root.args[at]) for at in (0, 2))  # type: ignore[misc]
    results: dict[str, Shape] = {"dst": (batch, rows, heads, width)}
    results |= {f"joined_{role}": c.builder.values[cache].shape for role, cache in given}
    dst, *caches = c.builder.step_of_several("attention", attention_of(c.root), operands, results)
    return (c.builder.permute(dst, (0, 2, 1, 3)), *caches)


def translate(c: Composite) -> int:
    roles = ("src", "key", "value", "mask")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=False)]
    batch, heads, rows, width = c.shape
    dst = c.builder.step("attention", attention_of(c.root), (batch, rows, heads, width), operands)
    return c.builder.permute(dst, (0, 2, 1, 3))
