"""Pools: one resample node, channels last."""

from __future__ import annotations

from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .pointwise import behind
from .tensors import GraphBuilder

_MODES = {
    "max": ("MAXPOOL", "NEG_INF_PAD"),
    "avg_include_padding": ("AVGPOOL_INCLUDE_PADDING", "ZERO_PAD"),
    "avg_exclude_padding": ("AVGPOOL_EXCLUDE_PADDING", "ZERO_PAD"),
}


def pooling(b: GraphBuilder, attrs: ir.Pooling) -> dict[str, Any]:
    if any(step != 1 for step in attrs.dilation):
        raise UnsupportedError("a dilated window, which cuDNN has not")
    source, shape = b.shape(b.place("src")), b.shape(b.dst)
    b.results(shape, b.strides(b.dst))
    mode, padding = _MODES[attrs.algorithm]
    end = tuple(
        max(0, (shape[2 + at] - 1) * attrs.strides[at] + window - source[2 + at] - attrs.padding[at])
        for at, window in enumerate(attrs.kernel)
    )
    x = b.node(
        "resample",
        [b.stored(b.place("src"))],
        mode=mode,
        padding=padding,
        window=attrs.kernel,
        stride=attrs.strides,
        pre_padding=attrs.padding,
        post_padding=end,
    )
    behind(b, x, b.step.post_ops, lambda at: b.stored(b.post_op(at)))
    return b.request()
