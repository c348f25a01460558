"""Tensors of several types joined into one, which is of the type that holds all."""

from __future__ import annotations

from tvm import relax

from ..node import Emitter, Node, dims_of
from .table import converts


@converts("cat.default")
def _joined(emitter: Emitter, node: Node) -> relax.Expr:
    tensors = node["tensors"]
    rank = len(node.result.shape)
    # A tensor of the shape [0] adds nothing to those of other shapes.
    kept = [tensor for tensor in tensors if len(dims_of(tensor)) == rank] or tensors
    return emitter.emit(
        relax.op.concat([emitter.cast(tensor, node.result.dtype) for tensor in kept], node["dim"] % rank)
    )


@converts("stack.default")
def _stacked(emitter: Emitter, node: Node) -> relax.Expr:
    tensors = [emitter.cast(tensor, node.result.dtype) for tensor in node["tensors"]]
    return emitter.emit(relax.op.stack(tensors, node["dim"]))
