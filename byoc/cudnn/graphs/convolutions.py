"""Convolutions, and transposed ones: the gradient of another convolution's source.

    y = act(convolution(x, w) + residual + bias)

What is added comes in that order, and a bias of zeros where an activation or a residual has none: cuDNN 9.19
has engines without code generation for this graph, and for parts of it that begin at the left or leave out
the middle.  Any other chain behind a convolution has engines that are compiled when the plan is made.
"""

from __future__ import annotations

from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .pointwise import behind
from .tensors import GraphBuilder


def convolution(b: GraphBuilder, attrs: ir.Convolution) -> dict[str, Any]:
    if attrs.algorithm != "direct" or attrs.preferred:
        raise UnsupportedError("cuDNN is given no convolution of this kind")
    return _product(b, attrs, "convolution")


def deconvolution(b: GraphBuilder, attrs: ir.Deconvolution) -> dict[str, Any]:
    return _product(b, attrs, "data_gradient")


def _product(b: GraphBuilder, attrs: ir.Convolution | ir.Deconvolution, kind: str) -> dict[str, Any]:
    shape = b.shape(b.dst)
    b.results(shape, b.strides(b.dst))
    axes = len(shape) - 2
    begin, end = attrs.padding[:axes], attrs.padding[axes:]
    if kind == "data_gradient":
        # What a convolution of the result reads: its end padding, output padding left out.
        end = tuple(_end(b, attrs, axis) for axis in range(axes))
    windows = {
        "pre_padding": begin,
        "post_padding": end,
        "stride": attrs.strides,
        "dilation": attrs.dilation,
    }
    x = b.node(kind, [b.stored(b.place("src")), _filters(b, attrs.groups, kind)], **windows)
    post_ops = b.step.post_ops
    adds = 0
    if b.has("bias"):
        while adds < len(post_ops) and _is_add(post_ops[adds]):
            x = b.pointwise("ADD", x, b.stored(b.post_op(adds)))
            adds += 1
        x = b.pointwise("ADD", x, b.vector(b.place("bias"), 1, len(shape)))
    behind(b, x, post_ops[adds:], lambda at: b.stored(b.post_op(adds + at)))
    return b.request()


def _is_add(post_op: ir.PostOp) -> bool:
    return isinstance(post_op, ir.BinaryPostOp) and post_op.algorithm == "add"


def _end(b: GraphBuilder, attrs: ir.Convolution | ir.Deconvolution, axis: int) -> int:
    """The end padding with which a convolution of dst has windows at src's places."""
    places = b.shape(b.place("src"))[2 + axis]
    window = b.shape(b.place("weights"))[(3 if attrs.groups > 1 else 2) + axis]
    reach = (places - 1) * attrs.strides[axis] + (window - 1) * attrs.dilation[axis] + 1
    return max(0, reach - b.shape(b.dst)[2 + axis] - attrs.padding[axis])


def _filters(b: GraphBuilder, groups: int, kind: str) -> int:
    """Filters [K, C, k...] as cuDNN's convolution has them: K channels of what its windows give.

    Groups stand outside of K; a transposed convolution's K are the channels of its source.
    """
    place = b.place("weights")
    shape, strides = b.shape(place), b.strides(place)
    outer = () if groups == 1 else shape[:1]
    axes = list(range(len(outer), len(shape)))
    if kind == "data_gradient":
        axes[0], axes[1] = axes[1], axes[0]
    ordered, steps = [shape[axis] for axis in axes], [strides[axis] for axis in axes]
    if outer:
        if strides[0] != ordered[0] * steps[0]:
            raise UnsupportedError("filters whose groups do not stand one behind the other")
        ordered[0] *= outer[0]
    return b.stored(place, tuple(ordered), tuple(steps))
