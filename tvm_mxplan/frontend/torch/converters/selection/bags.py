"""Sums of rows: bags of embeddings, rows by the matrix of their expert, elements added where indices say."""

from __future__ import annotations

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from .....operators.products.grouped_product import grouped_product
from ....onnx.dimensions.dims import same
from ...node import Emitter, Node, dims_of, dtype_of
from ..table import converts

_SUM, _MEAN, _MOST = range(3)


@converts("_embedding_bag_forward_only.default", "_embedding_bag.default")
def embedding_bags(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    """Bags are ranges of a list of indices: a matrix of which index belongs to which bag, and a product."""
    mode, weight = node["mode"], node["weight"]
    rows = emitter.emit(relax.op.take(weight, node["indices"], 0))
    dtype = dtype_of(weight)
    belongs = _membership(emitter, node)
    if node["padding_idx"] >= 0:
        padding = relax.const(node["padding_idx"], dtype_of(node["indices"]))
        kept = emitter.emit(relax.op.not_equal(node["indices"], padding))
        belongs = emitter.emit(relax.op.logical_and(belongs, kept))
    if node["per_sample_weights"] is not None:
        factors = emitter.reshaped(node["per_sample_weights"], [*dims_of(node["indices"]), 1])
        rows = emitter.emit(relax.op.multiply(rows, factors))
    hits = emitter.cast(belongs, dtype)
    if mode != _MOST:
        found = emitter.emit(relax.op.matmul(hits, rows))
        if mode == _MEAN:
            count = emitter.emit(relax.op.sum(hits, [1], keepdims=True))
            count = emitter.emit(relax.op.maximum(count, relax.const(1.0, dtype)))
            found = emitter.emit(relax.op.divide(found, count))
        return [found, None, None, None]
    bags, count = dims_of(belongs)
    spread = emitter.reshaped(belongs, [bags, count, 1])
    masked = emitter.emit(relax.op.where(spread, rows, relax.const(-np.inf, dtype)))
    most = emitter.emit(relax.op.max(masked, [1]))
    any_hit = emitter.emit(relax.op.max(hits, [1], keepdims=True))
    empty = emitter.emit(relax.op.equal(any_hit, relax.const(0.0, dtype)))
    return [emitter.emit(relax.op.where(empty, relax.const(0.0, dtype), most)), None, None, None]


def _membership(emitter: Emitter, node: Node) -> relax.Expr:
    """Truth values [bags, count]: whether an index belongs to a bag."""
    offsets, (count,) = emitter.cast(node["offsets"], "int64"), dims_of(node["indices"])
    (bags,) = dims_of(offsets)
    if node["include_last_offset"]:
        bags = bags - 1
        ends = emitter.emit(relax.op.strided_slice(offsets, [0], [1], [bags + 1]))
        offsets = emitter.emit(relax.op.strided_slice(offsets, [0], [0], [bags]))
    else:
        rest = emitter.emit(relax.op.strided_slice(offsets, [0], [1], [bags]))
        total = emitter.reshaped(emitter.scalar(count, "int64"), [1])
        ends = emitter.emit(relax.op.concat([rest, total], 0))
    places = emitter.emit(relax.op.arange(0, count, 1, "int64"))
    begun = emitter.emit(relax.op.greater_equal(places, emitter.reshaped(offsets, [bags, 1])))
    goes_on = emitter.emit(relax.op.less(places, emitter.reshaped(ends, [bags, 1])))
    return emitter.emit(relax.op.logical_and(begun, goes_on))


@converts("_grouped_mm.default", "transformers.grouped_mm_fallback.default")
def _experts(emitter: Emitter, node: Node) -> relax.Expr:
    """Rows [n, k] by matrices [groups, k, m], of which each has the rows up to its offset."""
    rows, matrices, ends = list(node.operands.values())[:3]
    if ends is None or len(dims_of(rows)) != 2 or len(dims_of(matrices)) != 3:
        raise UnsupportedError(
            "groups of another form; expected rows in two dimensions, matrices in three, and offsets"
        )
    if node.operands.get("bias") is not None:
        raise UnsupportedError("groups with a bias; expected none")
    if not isinstance(dims_of(matrices)[0], int):
        raise UnsupportedError("a number of groups that varies; expected a number")
    product = emitter.emit(grouped_product(rows, matrices, emitter.cast(ends, "int32")))
    return emitter.cast(product, node.result.dtype)


_REDUCTIONS = {
    "sum": ("add", 0.0),
    "mean": ("add", 0.0),
    "prod": ("mul", 1.0),
    "amax": ("max", -np.inf),
    "amin": ("min", np.inf),
}


@converts("scatter_add.default", "scatter.src", "scatter_reduce.two")
def _scattered(emitter: Emitter, node: Node) -> relax.Expr:
    source, index, values = node["self"], node["index"], node["src"]
    if not dims_of(source):
        source, index, values = (emitter.reshaped(one, [1]) for one in (source, index, values))
    axis = node["dim"] % len(dims_of(source))
    dims, given = dims_of(index), dims_of(values)
    cut = [at for at, (extent, whole) in enumerate(zip(dims, given, strict=True)) if not same(extent, whole)]
    if cut:
        ends = [dims[at] for at in cut]
        values = emitter.emit(relax.op.strided_slice(values, cut, [0] * len(cut), ends))
    reduction, count = "update", None
    if node.operator == "aten.scatter_add.default":
        reduction = "add"
    elif node.operator == "aten.scatter_reduce.two":
        if node["reduce"] not in _REDUCTIONS:
            raise UnsupportedError(f"reduce={node['reduce']!r}; expected one of {', '.join(_REDUCTIONS)}")
        reduction, neutral = _REDUCTIONS[node["reduce"]]
        if node["reduce"] == "mean":
            count = _count(emitter, source, index, axis, whole=node["include_self"])
        if not node["include_self"]:
            source = _without(emitter, source, index, axis, neutral)
    found = emitter.emit(
        relax.op.scatter_elements(source, emitter.cast(index, "int64"), values, axis, reduction)
    )
    if count is not None:
        divide = relax.op.divide if "float" in dtype_of(found) else relax.op.floor_divide
        found = emitter.emit(divide(found, emitter.cast(count, dtype_of(found))))
    return emitter.reshaped(found, node.result.shape)


def _count(emitter: Emitter, source: relax.Expr, index: relax.Expr, axis: int, *, whole: bool) -> relax.Expr:
    """The number of elements that meet at each place, the operand's own among them if ``whole``."""
    first, more = (
        emitter.broadcast(relax.const(number, "int64"), dims_of(one))
        for number, one in ((int(whole), source), (1, index))
    )
    places = emitter.cast(index, "int64")
    found = emitter.emit(relax.op.scatter_elements(first, places, more, axis, "add"))
    return emitter.emit(relax.op.maximum(found, relax.const(1, "int64")))


def _without(
    emitter: Emitter, source: relax.Expr, index: relax.Expr, axis: int, neutral: float
) -> relax.Expr:
    """The operand with a reduction's neutral element wherever something is written."""
    dtype = dtype_of(source)
    if "float" not in dtype:
        raise UnsupportedError(f"include_self=False on {dtype}; expected a type of real numbers")
    neutrals = emitter.broadcast(relax.const(neutral, dtype), dims_of(index))
    places = emitter.cast(index, "int64")
    return emitter.emit(relax.op.scatter_elements(source, places, neutrals, axis, "update"))
