"""Sums and the like over axes, cumulative ones, and orders."""

from __future__ import annotations

import math

from tvm import relax

from ..node import Node, Value, dtype_of
from .table import converts

_REDUCTIONS = {
    "sum": relax.op.sum,
    "mean": relax.op.mean,
    "max": relax.op.max,
    "min": relax.op.min,
    "prod": relax.op.prod,
}


@converts(*_REDUCTIONS)
def _reduction(node: Node) -> Value:
    return _REDUCTIONS[node.operator](node.tensor(0), _axes(node), node.flag("keepdims"))


@converts("all", "any")
def _logical(node: Node) -> Value:
    reduce = relax.op.min if node.operator == "all" else relax.op.max
    numbers = node.emit(relax.op.astype(node.tensor(0), "int8"))
    return relax.op.astype(node.emit(reduce(numbers, _axes(node), node.flag("keepdims"))), "bool")


@converts("variance")
def _variance(node: Node) -> Value:
    """The mean of squared distances to a mean that is given."""
    src, mean = node.tensor(0), node.tensor(1)
    axes = _axes(node)
    distance = node.emit(relax.op.subtract(src, mean))
    squares = node.emit(relax.op.multiply(distance, distance))
    result = node.emit(relax.op.mean(squares, axes, node.flag("keepdims")))
    if not node.flag("unbiased"):
        return result
    count = math.prod(node.fixed(src)[axis] for axis in axes)
    return relax.op.multiply(result, node.like(count / (count - 1) if count > 1 else math.nan, src))


def _axes(node: Node) -> list[int]:
    """The axes to reduce: those stated, all where none are, the others with ``exclude``."""
    rank = node.rank(node.tensor(0))
    stated = node.maybe_ints("axis")
    axes = list(range(rank)) if not stated else [node.from_front(axis, rank) for axis in stated]
    if stated and node.flag("exclude"):
        axes = [axis for axis in range(rank) if axis not in axes]
    return axes


@converts("argmax", "argmin")
def _arg_reduction(node: Node) -> Value:
    if node.flag("select_last_index"):
        node.unsupported("select_last_index; expected the first of several equal ones")
    src, axes = node.tensor(0), _axes(node)
    rank = node.rank(src)
    reduce = relax.op.argmax if node.operator == "argmax" else relax.op.argmin
    if len(axes) == 1:
        found = reduce(src, axes[0], node.flag("keepdims"))
    elif len(axes) == rank:
        found = reduce(src, None, node.flag("keepdims"))
    else:
        node.unsupported(f"axes {axes} of {rank}; expected one, or all")
    return relax.op.astype(node.emit(found), "int32")


@converts("cumsum")
def _cumsum(node: Node) -> Value:
    axis = node.attribute("axis")
    if axis is not None:
        axis = node.axis("axis", node.rank(node.tensor(0)))
    dtype = node.dtype("dtype", dtype_of(node.tensor(0)))
    return relax.op.cumsum(node.tensor(0), axis, dtype, bool(node.attribute("exclusive")))


@converts("topk")
def _topk(node: Node) -> Value:
    kind = node.text("ret_type")
    extent = node.shape(node.tensor(0))[node.axis("axis", node.rank(node.tensor(0)))]
    if node.integer("k") < 1 or (isinstance(extent, int) and node.integer("k") > extent):
        node.wrong(f"k = {node.integer('k')} of {extent}; expected a number from 1 to the extent")
    result = node.emit(
        relax.op.topk(
            node.tensor(0),
            node.integer("k"),
            node.integer("axis"),
            kind,
            largest=not node.flag("is_ascend"),
            dtype=node.dtype("dtype", "int32"),
        )
    )
    return [node.emit(relax.TupleGetItem(result, at)) for at in range(2)] if kind == "both" else result


@converts("argsort")
def _argsort(node: Node) -> Value:
    return relax.op.argsort(
        node.tensor(0), node.integer("axis"), not node.flag("is_ascend"), node.dtype("dtype", "int32")
    )
