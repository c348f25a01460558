"""Convolutions, transposed ones, which are the gradient of another's source, and gradients of filters.

    y = act(convolution(x, w) + residual + bias)

What is added comes in that order, and a bias of zeros where an activation or a residual has none: cuDNN 9.19
has engines without code generation for this graph, and for parts of it that begin at the left or leave out
the middle.  Any other chain behind a convolution has engines that are compiled when the plan is made.
"""

from __future__ import annotations

from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .integers import integers, rounded
from .pointwise import behind
from .tensors import GraphBuilder, Ints


def convolution(b: GraphBuilder, attrs: ir.Convolution) -> dict[str, Any]:
    if attrs.algorithm != "direct" or attrs.preferred:
        raise UnsupportedError("cuDNN is given no convolution of this kind")
    return _product(b, attrs, "convolution")


def deconvolution(b: GraphBuilder, attrs: ir.Deconvolution) -> dict[str, Any]:
    if attrs.algorithm != "direct":
        raise UnsupportedError("cuDNN is given no convolution of this kind")
    return _product(b, attrs, "data_gradient")


def _product(b: GraphBuilder, attrs: ir.Convolution | ir.Deconvolution, kind: str) -> dict[str, Any]:
    shape = b.shape(b.dst)
    b.results(shape, b.strides(b.dst))
    axes = len(shape) - 2
    end = attrs.padding[axes:]
    if kind == "data_gradient":
        end = _end(b, attrs, b.dst, b.place("src"), b.place("weights"))
    filters = b.stored(b.place("weights"), *_filters(b, b.place("weights"), attrs.groups, kind))
    windows: dict[str, Any] = dict(_windows(attrs, end))
    if b.step.is_quantized:
        return _product_of_integers(
            b, b.node(kind, [b.stored(b.place("src")), filters], "int32", compute="INT32", **windows)
        )
    x = b.node(kind, [b.stored(b.place("src")), filters], **windows)
    post_ops = b.step.post_ops
    adds = 0
    if b.has("bias"):
        while adds < len(post_ops) and _is_add(post_ops[adds]):
            x = b.pointwise("ADD", x, _beside(b, b.post_op(adds)))
            adds += 1
        x = b.pointwise("ADD", x, b.vector(b.place("bias"), 1, len(shape)))
    own = {"relu": _maximum} if _is_depthwise(b, attrs) else {}
    behind(b, x, post_ops[adds:], lambda at: _beside(b, b.post_op(adds + at)), own)
    return b.request()


def _is_depthwise(b: GraphBuilder, attrs: ir.Convolution | ir.Deconvolution) -> bool:
    return isinstance(attrs, ir.Convolution) and attrs.groups == b.shape(b.place("src"))[1] > 1


def _maximum(b: GraphBuilder, x: int) -> int:
    """A ReLU that leaves a depthwise convolution the engines that are compiled when the plan is made.

    With its own node there are the older ones alone, whose times on an H200 are five times those.
    """
    return b.pointwise("MAX", x, b.number(0.0))


def _product_of_integers(b: GraphBuilder, x: int) -> dict[str, Any]:
    """Sums of integers, scaled, and what stands behind them in float32, integers at the end."""
    rank = len(b.shape(b.dst))
    if b.has("src_zero_point"):
        raise UnsupportedError("a zero point of what a product of integers reads")
    one = b.shape(b.place("weights_scale")) == (1,)
    scales = b.single(b.place("weights_scale"), rank) if one else b.vector(b.place("weights_scale"), 1, rank)
    x = b.pointwise("MUL", b.pointwise("MUL", x, scales), b.single(b.place("src_scale"), rank))
    if b.has("bias"):
        x = b.pointwise("ADD", x, b.vector(b.place("bias"), 1, rank))
    x = behind(b, x, b.step.post_ops, lambda at: _beside(b, b.post_op(at)), {"round": rounded})
    if b.has("dst_scale"):
        integers(b, x, rank)
    return b.request()


def _beside(b: GraphBuilder, place: int) -> int:
    """The tensor of what a post-op reads."""
    shape = b.shape(place)
    b.check_batches(shape, b.shape(b.dst)[0], shape[2:])
    return b.stored(place)


def _is_add(post_op: ir.PostOp) -> bool:
    return isinstance(post_op, ir.BinaryPostOp) and post_op.algorithm == "add"


def backward_weights(b: GraphBuilder, attrs: ir.ConvolutionBackwardWeights) -> dict[str, Any]:
    src, gradient = b.place("src"), b.place("gradient")
    shape, strides = _filters(b, b.dst, attrs.groups, "weights_gradient")
    b.results(shape, strides)
    end = _end(b, attrs, src, gradient, b.dst)
    b.node("weights_gradient", [b.stored(gradient), b.stored(src)], **_windows(attrs, end))
    return b.request(shape, strides)


_Filtering = ir.Convolution | ir.Deconvolution | ir.ConvolutionBackwardWeights


def _windows(attrs: _Filtering, end: Ints) -> dict[str, Any]:
    return {
        "pre_padding": attrs.padding[: len(end)],
        "post_padding": end,
        "stride": attrs.strides,
        "dilation": attrs.dilation,
    }


def _end(b: GraphBuilder, attrs: _Filtering, image: int, result: int, filters: int) -> Ints:
    """The end padding with which a convolution of an image has windows at the result's places.

    Output padding, and rows that a stride leaves unread, are left out.
    """
    found = []
    for axis, window in enumerate(b.shape(filters)[3 if attrs.groups > 1 else 2 :]):
        places = b.shape(result)[2 + axis]
        reach = (places - 1) * attrs.strides[axis] + (window - 1) * attrs.dilation[axis] + 1
        found.append(max(0, reach - b.shape(image)[2 + axis] - attrs.padding[axis]))
    return tuple(found)


def _filters(b: GraphBuilder, place: int, groups: int, kind: str) -> tuple[Ints, Ints]:
    """Shape and strides of filters [K, C, k...] as cuDNN has them: K channels of what its windows give.

    Groups stand outside of K; a transposed convolution's K are the channels of its source.
    """
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
    return tuple(ordered), tuple(steps)
