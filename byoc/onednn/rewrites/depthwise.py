"""Depthwise convolutions as post-ops of the pointwise convolution before them.

Before   v1 = convolution(x, w) post_ops=[clip];  v2 = convolution(v1, d) groups=channels
After    v2 = convolution(x, w, depthwise_weights=d) post_ops=[clip, depthwise 3x3]

oneDNN then computes the rows of v1 that the next row of v2 needs, while they are in the cache, and v1 never
travels to memory.  That pays only where v1 is much larger than the caches (inverted residuals on large images
or at large batches); elsewhere two primitives are faster, and oneDNN itself falls back to running two.
"""

from __future__ import annotations

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.element_types import dense_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static

LEAST_TIMES = {1: 2.5, 2: 2.0}
"""Multiples of what private caches hold, from which v1 makes a pair, by the stride: docs/figures/tried.md."""
_CHANNEL_MULTIPLE = 16  # oneDNN fuses whole vectors of channels only


def fuse_depthwise(graph: Graph, at: int, private: int) -> tuple[int, ir.Step] | None:
    """Returns the place of the producer of the step at ``at``, and both as one, if they are a pair that pays.

    The graph stays as it is.

    Parameters
    ----------
    private : bytes of the caches that cores have to themselves, all together.
    """
    step = graph.steps[at]
    if step is None or step.post_ops or not _is_depthwise(graph, step):
        return None
    producer = graph.producer(step.operand("src"))
    if producer is None:
        return None
    first = graph.steps[producer]
    assert first is not None
    if step.is_quantized or first.is_quantized:  # oneDNN keeps real numbers between the two
        return None
    shape = graph.values[first.dst].shape
    stride = step.attrs.strides[0]  # type: ignore[union-attr]
    if not _is_pointwise(graph, first) or not is_static(shape) or shape[1] % _CHANNEL_MULTIPLE:  # type: ignore[operator]
        return None
    if dense_bytes(shape, graph.values[first.dst].dtype) < LEAST_TIMES[stride] * private:
        return None
    moved = [
        ir.Operand(f"depthwise_{operand.role}", operand.value)
        for operand in step.operands
        if operand.role in ("weights", "bias")
    ]
    kept = [operand for operand in first.operands if operand.role != "dst"]
    post_ops = (*first.post_ops, ir.DepthwisePostOp(3, stride, 1))
    pair = ir.Step(first.name, first.attrs, (*kept, ir.Operand("dst", step.dst), *moved), post_ops)
    return producer, pair


def _is_depthwise(graph: Graph, step: ir.Step) -> bool:
    attrs = step.attrs
    if not isinstance(attrs, ir.Convolution) or attrs.groups == 1 or not _has_constant_weights(graph, step):
        return False
    one_each = (attrs.groups, 1, 1, 3, 3)
    square = attrs.strides in ((1, 1), (2, 2)) and attrs.padding == (1, 1, 1, 1) and attrs.dilation == (1, 1)
    return square and graph.values[step.operand("weights")].shape == one_each


def _is_pointwise(graph: Graph, step: ir.Step) -> bool:
    attrs = step.attrs
    if not isinstance(attrs, ir.Convolution) or not _has_constant_weights(graph, step):
        return False
    plain = attrs.groups == 1 and attrs.strides == (1, 1) and not any(attrs.padding)
    point = graph.values[step.operand("weights")].shape[2:] == (1, 1)
    return plain and point and all(isinstance(post_op, ir.EltwisePostOp) for post_op in step.post_ops)


def _has_constant_weights(graph: Graph, step: ir.Step) -> bool:
    return all(
        graph.constant(operand.value) is not None
        for operand in step.operands
        if operand.role in ("weights", "bias")
    )
