"""Attention as two products around a softmax, which is the form that regions take.

A row whose mask leaves nothing is 0 in PyTorch; where a mask is known only when the model runs, such rows are
looked for in the mask, which is smaller than the scores.
"""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from ....errors import UnsupportedError
from ...onnx.dimensions.dims import Dim, divided, simplified
from ..node import Emitter, Node, dims_of, dtype_of
from .table import converts

_FAR = {"float16": -3e4}
"""The term added to masked scores, -1e30 but for narrow types: after a softmax, nothing is left of them."""


@converts("scaled_dot_product_attention.default")
def _attention(emitter: Emitter, node: Node) -> relax.Expr:
    return _attended(emitter, node)


@converts("_scaled_dot_product_flash_attention_for_cpu.default")
def _flash_attention(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    """The same; its second result is for gradients."""
    return [_attended(emitter, node), None]


def _attended(emitter: Emitter, node: Node) -> relax.Expr:
    query, key, value = node["query"], node["key"], node["value"]
    rate = float(node["dropout_p"])
    if rate and not emitter.trains:
        raise UnsupportedError("attention drops at random; call model.eval() first")
    if node.operands.get("enable_gqa"):
        key, value = (_heads_repeated(emitter, operand, query) for operand in (key, value))
    dtype, rank = dtype_of(query), len(dims_of(query))
    depth, length = dims_of(query)[-1], dims_of(key)[-2]
    factor = node["scale"]
    if factor is None:
        if not isinstance(depth, int):
            raise UnsupportedError("the depth of attention's heads is not a number; expected one")
        factor = 1 / math.sqrt(depth)
    scaled = emitter.emit(relax.op.multiply(query, relax.const(factor, dtype)))
    axes = [*range(rank - 2), rank - 1, rank - 2]
    scores = emitter.emit(relax.op.matmul(scaled, emitter.emit(relax.op.permute_dims(key, axes))))
    mask = node["attn_mask"]
    if node["is_causal"]:
        mask = _causal(emitter, dims_of(query)[-2], length)
    if mask is None:
        return emitter.emit(relax.op.matmul(_shares(emitter, scores, rate), value))
    added, live = _masks(emitter, mask, dtype)
    scores = emitter.emit(relax.op.add(scores, added))
    result = emitter.emit(relax.op.matmul(_shares(emitter, scores, rate), value))
    if node["is_causal"]:
        return result  # a row sees itself at least
    return emitter.emit(relax.op.where(live, result, relax.const(0, dtype)))


def _shares(emitter: Emitter, scores: relax.Expr, rate: float) -> relax.Expr:
    """The share of each column in a row, of which some are dropped in training."""
    shares = emitter.emit(relax.op.nn.softmax(scores, -1))
    return emitter.dropped(shares, rate) if rate else shares


def _masks(emitter: Emitter, mask: relax.Expr, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    """Returns the term that a mask adds, and the rows it leaves any of; one pair for all that share it."""
    key = ("mask", mask, dtype)
    if key not in emitter.made:
        added, live = mask, mask
        if dtype_of(mask) == "bool":
            far = relax.const(_FAR.get(dtype, -1e30), dtype)
            added = emitter.emit(relax.op.where(mask, relax.const(0, dtype), far))
        else:
            live = emitter.emit(relax.op.greater(mask, relax.const(-np.inf, dtype)))
        any_live = emitter.emit(relax.op.max(emitter.cast(live, "float32"), -1, keepdims=True))
        emitter.made[key] = added, emitter.cast(any_live, "bool")
    return emitter.made[key]


def _causal(emitter: Emitter, rows: Dim, columns: Dim) -> relax.Expr:
    """Whether a row may see a column: those up to its own."""
    if isinstance(rows, int) and isinstance(columns, int):
        return relax.const(np.tril(np.ones((rows, columns), "bool")))
    at_row, at_column = (
        relax.const(np.arange(extent, dtype="int64"))
        if isinstance(extent, int)
        else emitter.emit(relax.op.arange(0, extent, 1, "int64"))
        for extent in (rows, columns)
    )
    return emitter.emit(relax.op.greater_equal(emitter.emit(relax.op.expand_dims(at_row, 1)), at_column))


def _heads_repeated(emitter: Emitter, operand: relax.Expr, query: relax.Expr) -> relax.Expr:
    """Heads of keys or values, each as often as there are heads of queries for it."""
    times = divided(dims_of(query)[-3], simplified(dims_of(operand)[-3]))
    if times == 1:
        return operand
    if not isinstance(times, int):
        raise UnsupportedError("the number of attention's heads is not known; expected a number")
    return emitter.emit(relax.op.repeat(operand, times, len(dims_of(operand)) - 3))
