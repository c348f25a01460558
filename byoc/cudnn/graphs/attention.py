"""Scaled dot-product attention: one node, in float16 alone."""

from __future__ import annotations

from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .tensors import GraphBuilder


def attention(b: GraphBuilder, attrs: ir.Attention) -> dict[str, Any]:
    """Heads in front of rows; the step's result has rows in front of heads."""
    dtype = b.value(b.dst).dtype
    if dtype == "float32":
        raise UnsupportedError("attention in float32: cuDNN has it in 16 bits")
    if attrs.nan_is_zero:
        raise UnsupportedError("attention whose rows may see nothing: cuDNN says not what they give")
    shape, strides = b.shape(b.dst), b.strides(b.dst)
    turned = (0, 2, 1, 3)
    shape, strides = tuple(shape[at] for at in turned), tuple(strides[at] for at in turned)
    b.results(shape, strides)
    inputs = [b.stored(b.place(role)) for role in ("src", "key", "value")]
    inputs.append(b.number(attrs.scale))
    if b.has("mask"):
        inputs.append(b.stored(b.place("mask")))
    b.node("attention", inputs, causal=attrs.causal)
    return b.request(shape, strides)
