"""Averages and variances over some axes, with any correction of the count."""

from __future__ import annotations

import math
from typing import Any

from tvm import relax

from ....onnx.dimensions.dims import Dim
from ...node import Emitter, Node, axes_of, dims_of, dtype_of
from ..table import converts


@converts("mean.default", "mean.dim")
def _mean(emitter: Emitter, node: Node) -> relax.Expr:
    source = emitter.cast(node["self"], node.result.dtype)
    keep = bool(node.operands.get("keepdim")) and bool(node.result.shape)
    return emitter.emit(relax.op.mean(source, axes_of(node), keepdims=keep))


@converts("var.correction", "std.correction", "var_mean.correction", "std_mean.correction")
def _variance(emitter: Emitter, node: Node) -> Any:
    """The squares' sum over the count less the correction, 1 unless stated; where that is below 0, over 0."""
    source, emit = node["self"], emitter.emit
    axes, dtype = axes_of(node), dtype_of(source)
    keep = bool(node["keepdim"]) and bool(dims_of(source))
    correction = 1 if node["correction"] is None else node["correction"]
    if _count(source, axes) == 0:  # of nothing: kernels divide by its number of elements
        nothing = relax.const(math.nan, dtype)
        found = [emitter.broadcast(nothing, one.shape) for one in node.stated if one is not None]
        return found if "_mean." in node.operator else found[0]
    found = emit(relax.op.variance(source, axes, keepdims=keep))
    if correction != 0:
        found = emit(relax.op.multiply(found, _scale(emitter, _count(source, axes), correction, dtype)))
    if ".std" in node.operator:
        found = emit(relax.op.sqrt(found))
    if "_mean." not in node.operator:
        return found
    return [found, emit(relax.op.mean(source, axes, keepdims=keep))]


def _count(source: relax.Expr, axes: list[int] | None) -> Dim:
    dims = dims_of(source)
    return math.prod(dims if axes is None else [dims[axis] for axis in axes])


def _scale(emitter: Emitter, count: Dim, correction: float, dtype: str) -> relax.Expr:
    """The factor that makes of an average of ``count`` squares one of fewer."""
    if isinstance(count, int):
        rest = count - correction
        return relax.const(count / rest if rest > 0 else math.inf, dtype)
    counted = emitter.scalar(count, dtype)
    rest = emitter.emit(relax.op.subtract(counted, relax.const(float(correction), dtype)))
    rest = emitter.emit(relax.op.maximum(rest, relax.const(0.0, dtype)))
    return emitter.emit(relax.op.divide(counted, rest))
