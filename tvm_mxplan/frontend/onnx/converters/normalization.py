"""Normalizations that TVM's importer lacks or gets wrong."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..node import Emitter, Node
from ..values import Value, dtype_of, rank_of
from .table import converts


@converts("LayerNormalization")
def _layer_normalization(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """All axes from one on; the second and third result are the mean and one over the deviation."""
    data = emitter.tensor(node.input(0))
    rank = rank_of(data)
    first = node.attribute("axis", -1)
    axes = list(range(first % rank, rank))
    epsilon = node.attribute("epsilon", 1e-5)
    dtype = dtype_of(data)
    scale = emitter.tensor(node.input(1))
    bias = node.input(2)
    wanted = [index for index, name in enumerate(node.outputs) if name]
    if rank_of(scale) != len(axes):
        return _general(emitter, node, data, axes)
    zeros = relax.op.zeros_like(scale) if bias is None else emitter.tensor(bias)
    if bias is None:
        zeros = emitter.emit(zeros)
    result = emitter.emit(relax.op.nn.layer_norm(data, scale, zeros, axes, epsilon))
    if wanted[-1] == 0:
        return (result,)
    mean, deviation = _statistics(emitter, data, axes, epsilon, dtype)
    return result, mean, deviation


def _statistics(
    emitter: Emitter, data: relax.Expr, axes: list[int], epsilon: float, dtype: str
) -> tuple[relax.Var, relax.Var]:
    wide = data if dtype == "float32" else emitter.emit(relax.op.astype(data, "float32"))
    mean = emitter.emit(relax.op.mean(wide, axes, keepdims=True))
    centred = emitter.emit(relax.op.subtract(wide, mean))
    variance = emitter.emit(relax.op.mean(relax.op.multiply(centred, centred), axes, keepdims=True))
    return mean, emitter.emit(relax.op.rsqrt(relax.op.add(variance, relax.const(np.float32(epsilon)))))


def _general(emitter: Emitter, node: Node, data: relax.Expr, axes: list[int]) -> tuple[Value, ...]:
    """A scale that broadcasts over the axes."""
    dtype = dtype_of(data)
    mean, deviation = _statistics(emitter, data, axes, node.attribute("epsilon", 1e-5), dtype)
    wide = data if dtype == "float32" else emitter.emit(relax.op.astype(data, "float32"))
    result = emitter.emit(relax.op.multiply(relax.op.subtract(wide, mean), deviation))
    result = result if dtype == "float32" else emitter.emit(relax.op.astype(result, dtype))
    result = emitter.emit(relax.op.multiply(result, emitter.tensor(node.input(1))))
    if node.input(2) is not None:
        result = emitter.emit(relax.op.add(result, emitter.tensor(node.input(2))))
    return result, mean, deviation
