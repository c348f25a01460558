"""Products of two tensors: matrices, with batches in one dimension in front of them."""

from __future__ import annotations

import math
from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .pointwise import behind
from .tensors import GraphBuilder, Ints


def matmul(b: GraphBuilder, _attrs: ir.MatMul) -> dict[str, Any]:
    shape, strides = _matrices(b, b.dst)
    b.results(shape, strides)

    def read(place: int) -> int:
        seen = _matrices(b, place)
        if seen[0][0] not in (1, shape[0]):
            raise UnsupportedError("an operand for some of the batches")
        return b.stored(place, *seen)

    x = b.node("matmul", [read(b.place("src")), read(b.place("weights"))])

    def beside(place: int) -> int:
        seen, _ = _matrices(b, place)
        b.check_batches(seen, shape[0], seen[1:2])
        return read(place)

    if b.has("bias"):
        x = b.pointwise("ADD", x, beside(b.place("bias")))
    behind(b, x, b.step.post_ops, lambda at: beside(b.post_op(at)))
    return b.request(shape, strides)


def _matrices(b: GraphBuilder, place: int) -> tuple[Ints, Ints]:
    """Shape and strides of an operand as [batch, rows, columns]; cuDNN knows one batch dimension."""
    shape, strides = b.shape(place), b.strides(place)
    step = batch_stride(shape, strides)
    if step is None:
        raise UnsupportedError("batches that do not stand one behind the other")
    return (math.prod(shape[:-2]), *shape[-2:]), (step, *strides[-2:])


def batch_stride(shape: Ints, strides: Ints) -> int | None:
    """Elements from one matrix of [..., rows, columns] to the next; None where no number says it."""
    batches, step = 1, 0
    for extent, stride in zip(reversed(shape[:-2]), reversed(strides[:-2]), strict=True):
        if extent == 1:
            continue
        if batches > 1 and stride != step * batches:
            return None
        step = step or stride
        batches *= extent
    return step or math.prod(shape[-2:])
