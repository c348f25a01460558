"""Products of matrices, and of weights stored as Relay stores them: one row for each result."""

from __future__ import annotations

from tvm import relax

from ..node import Node, Value, dtype_of
from .table import converts


@converts("nn.dense")
def _dense(node: Node) -> Value:
    return _product(node, False, True)


@converts("nn.matmul", "nn.batch_matmul")
def _matmul(node: Node) -> Value:
    return _product(node, node.flag("transpose_a"), node.flag("transpose_b"))


def _product(node: Node, transpose_a: bool, transpose_b: bool) -> Value:
    dtype = node.dtype("out_dtype", dtype_of(node.tensor(0)))
    a, b = (
        _turned(node, node.tensor(index)) if turned else node.tensor(index)
        for index, turned in ((0, transpose_a), (1, transpose_b))
    )
    return relax.op.matmul(a, b, None if dtype == dtype_of(a) else dtype)


def _turned(node: Node, value: relax.Expr) -> relax.Expr:
    """The last two axes in turn."""
    rank = node.rank(value)
    if rank < 2:
        node.wrong(f"expected matrices, got an operand of rank {rank}")
    return node.emit(relax.op.permute_dims(value, [*range(rank - 2), rank - 1, rank - 2]))


@converts("einsum")
def _einsum(node: Node) -> Value:
    return relax.op.einsum(tuple(node.tensors(0)), node.text("equation"))


@converts("nn.batch_flatten")
def _batch_flatten(node: Node) -> Value:
    src = node.tensor(0)
    return relax.op.reshape(src, [node.shape(src)[0], -1])
