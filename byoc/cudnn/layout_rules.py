"""Layouts that cuDNN's engines are asked for: channels last alone, which tensor cores work on.

Images, filters and what is added to images are in it; vectors for channels are plain.
"""

from __future__ import annotations

from tvm_mxplan.core.element_types import stored_bytes
from tvm_mxplan.core.layout.layout import (
    channels_last,
    parse_layout,
    permute_layout,
    plain_layout,
    same_bytes,
)
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.program import program as ir

TYPES = ("float32", "float16")
RULES = LayoutRules(forms=("last",), images=(ir.Convolution,))


def filters_layout(rank: int, grouped: bool) -> str:
    """Of filters [G?, O, I, k...]: input channels innermost, groups outermost."""
    if not grouped:
        return channels_last(rank)
    # [G, O, k..., I] as it is stored, seen as [G, O, I, k...].
    return permute_layout(plain_layout(rank), (0, 1, rank - 1, *range(2, rank - 1)))


def operands(step: ir.Step) -> list[tuple[str, int]]:
    """Roles and values in the order of uids: operands, then those of post-ops."""
    found = [(one.role, one.value) for one in step.operands]
    return found + [("src1", one.value) for one in step.post_ops if isinstance(one, ir.BinaryPostOp)]


def why_not(program: ir.Program, step: ir.Step) -> str:
    """Returns the reason why a convolution's operands cannot be in the layouts they have, '' if they can."""
    assert isinstance(step.attrs, ir.Convolution)
    for role, number in operands(step):
        value = program.values[number]
        rank = len(value.shape)
        expected = channels_last(rank)
        if parse_layout(value.layout).blocks:
            return f"{role} in blocks: cuDNN is asked for channels last alone"
        if role == "weights":
            expected = filters_layout(rank, step.attrs.groups > 1)
        if not same_bytes(value.layout, expected, value.shape):
            return f"{role} in {value.layout}: cuDNN is asked for channels last alone"
    return ""


def nbytes(value: ir.Value) -> int:
    """Bytes of a value, -1 of a type that cuDNN is not given."""
    if value.dtype not in TYPES:
        return -1
    return stored_bytes(value.shape, value.layout, value.dtype)
