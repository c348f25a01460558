"""Normalizations that TVM's importer lacks or gets wrong."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...dimensions.dims import same
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts


@converts("LayerNormalization")
def _layer_normalization(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """All axes from one on; the second and third result are the mean and one over the deviation."""
    data = emitter.tensor(node.input(0))
    rank, dtype = emitter.rank(data), dtype_of(data)
    axes = list(range(node.attribute("axis", -1) % rank, rank))
    scale, bias = node.input(1), node.input(2)
    if dtype not in _BY_OPERATOR or not all(_covers(emitter, data, one, axes) for one in (scale, bias)):
        return _general(emitter, node, data, axes)
    scale = emitter.tensor(scale)
    shift = emitter.emit(relax.op.zeros_like(scale)) if bias is None else emitter.tensor(bias)
    epsilon = node.attribute("epsilon", 1e-5)
    result = emitter.emit(relax.op.nn.layer_norm(data, scale, shift, axes, epsilon))
    if not any(node.outputs[1:]):
        return (result,)
    mean, deviation = _statistics(emitter, data, axes, epsilon)
    return result, mean, deviation


_BY_OPERATOR = ("float32", "float16")
"""Types for which Relax's normalization has a kernel."""


def _covers(emitter: Emitter, data: relax.Expr, row: Value, axes: list[int]) -> bool:
    """Whether a scale or shift has the shape of the normalized axes, and no broadcasting is left to do.

    A number other than 1 has to be the extent, though that has a name.
    """
    if row is None:
        return True
    dims, given = emitter.shape(data), emitter.shape(row)
    wanted = [dims[axis] for axis in axes]
    return len(given) == len(wanted) and all(
        same(dim, extent) or (isinstance(dim, int) and dim != 1)
        for dim, extent in zip(given, wanted, strict=True)
    )


def _statistics(
    emitter: Emitter, data: relax.Expr, axes: list[int], epsilon: float
) -> tuple[relax.Var, relax.Var]:
    """The mean and one over the deviation, in float32 whatever the type of the operand."""
    wide = data if dtype_of(data) == "float32" else emitter.emit(relax.op.astype(data, "float32"))
    mean = emitter.emit(relax.op.mean(wide, axes, keepdims=True))
    centred = emitter.emit(relax.op.subtract(wide, mean))
    variance = emitter.emit(relax.op.mean(relax.op.multiply(centred, centred), axes, keepdims=True))
    return mean, emitter.emit(relax.op.rsqrt(relax.op.add(variance, relax.const(np.float32(epsilon)))))


def _general(emitter: Emitter, node: Node, data: relax.Expr, axes: list[int]) -> tuple[Value, ...]:
    """A scale and a shift that broadcast over the operand."""
    dtype = dtype_of(data)
    mean, deviation = _statistics(emitter, data, axes, node.attribute("epsilon", 1e-5))
    wide = data if dtype == "float32" else emitter.emit(relax.op.astype(data, "float32"))
    result = emitter.emit(relax.op.multiply(relax.op.subtract(wide, mean), deviation))
    result = result if dtype == "float32" else emitter.emit(relax.op.astype(result, dtype))
    result = emitter.emit(relax.op.multiply(result, emitter.tensor(node.input(1))))
    if node.input(2) is not None:
        result = emitter.emit(relax.op.add(result, emitter.tensor(node.input(2))))
    return result, mean, deviation


@converts("RMSNormalization")
def _rms_normalization(emitter: Emitter, node: Node) -> Value:
    """All axes from one on; over the last one alone it is an operator of TVM."""
    data = emitter.tensor(node.input(0))
    rank, dtype = emitter.rank(data), dtype_of(data)
    axes = list(range(node.attribute("axis", -1) % rank, rank))
    scale = emitter.tensor(node.input(1))
    if len(axes) == 1 and dtype == "float32" and _covers(emitter, data, scale, axes):
        return emitter.emit(relax.op.nn.rms_norm(data, scale, axes, node.attribute("epsilon", 1e-5)))
    emit = emitter.emit
    wide = data if dtype in ("float32", "float64") else emit(relax.op.astype(data, "float32"))
    squares = emit(relax.op.mean(relax.op.multiply(wide, wide), axes, keepdims=True))
    epsilon = constant(node.attribute("epsilon", 1e-5), dtype_of(wide))
    result = emit(relax.op.multiply(wide, relax.op.rsqrt(relax.op.add(squares, epsilon))))
    result = result if dtype_of(wide) == dtype else emit(relax.op.astype(result, dtype))
    return emit(relax.op.multiply(result, scale))


@converts("LpNormalization")
def _lp_normalization(emitter: Emitter, node: Node) -> Value:
    """Divided by the norm along an axis; zero where that is zero."""
    data = emitter.tensor(node.input(0))
    emit, dtype = emitter.emit, dtype_of(data)
    axis = [node.attribute("axis", -1)]
    if node.attribute("p", 2) == 1:
        norm = emit(relax.op.sum(relax.op.abs(data), axis, keepdims=True))
    else:
        norm = emit(relax.op.sqrt(relax.op.sum(relax.op.multiply(data, data), axis, keepdims=True)))
    one = constant(1, dtype)
    empty = relax.op.equal(norm, constant(0, dtype))
    return emit(relax.op.divide(data, emit(relax.op.where(empty, one, norm))))


@converts("MeanVarianceNormalization")
def _mean_variance_normalization(emitter: Emitter, node: Node) -> Value:
    """From deviations of the mean; of narrow types in float32.

    Twice centred: equal elements are as far from their mean as that is rounded, which would be taken for a
    deviation.
    """
    data = emitter.tensor(node.input(0))
    emit, dtype, rank = emitter.emit, dtype_of(data), emitter.rank(data)
    axes = [axis % rank for axis in node.attribute("axes", [0, 2, 3])]
    wide = data if dtype in ("float32", "float64") else emit(relax.op.astype(data, "float32"))
    centred = wide
    for _ in range(2):
        centred = emit(relax.op.subtract(centred, relax.op.mean(centred, axes, keepdims=True)))
    variance = emit(relax.op.mean(relax.op.multiply(centred, centred), axes, keepdims=True))
    # As ONNX's own function has it.
    deviation = relax.op.add(relax.op.sqrt(variance), constant(1e-9, dtype_of(wide)))
    result = emit(relax.op.divide(centred, deviation))
    return result if dtype_of(wide) == dtype else emit(relax.op.astype(result, dtype))


@converts("BatchNormalization")
def _plain_batch_normalization(emitter: Emitter, node: Node) -> Value:
    """By statistics of the model: one for each element, as versions before 9 can have them, or of a row."""
    rank = len(emitter.shape(node.input(0)))
    by_element = node.opset < 9 and not node.attribute("spatial", 1)
    if node.attribute("training_mode", 0) or not (by_element or rank == 1) or any(node.outputs[1:]):
        raise NotTaken
    emit = emitter.emit
    dtype = dtype_of(node.input(0))
    inner = dtype if dtype == "float64" else "float32"

    def wide(value: Value) -> relax.Expr:
        tensor = emitter.tensor(value)
        return tensor if dtype_of(tensor) == inner else emit(relax.op.astype(tensor, inner))

    data, scale, bias, mean, variance = (wide(node.input(at)) for at in range(5))
    epsilon = constant(node.attribute("epsilon", 1e-5), inner)
    deviation = emit(relax.op.rsqrt(relax.op.add(variance, epsilon)))
    result = emit(relax.op.multiply(relax.op.subtract(data, mean), relax.op.multiply(deviation, scale)))
    result = emit(relax.op.add(result, bias))
    return result if dtype == inner else emit(relax.op.astype(result, dtype))


@converts("BatchNormalization", first_opset=14)
def _batch_normalization(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """In training mode: by the batch's own statistics, and the running ones that follow."""
    if not node.attribute("training_mode", 0):
        raise NotTaken
    data = emitter.tensor(node.input(0))
    scale, bias, mean, variance = (emitter.tensor(node.input(at)) for at in range(1, 5))
    emit, rank = emitter.emit, emitter.rank(data)
    axes = [axis for axis in range(rank) if axis != 1]
    dtype = dtype_of(data)
    wide = data if dtype in ("float32", "float64") else emit(relax.op.astype(data, "float32"))
    inner = dtype_of(wide)

    def row(value: relax.Expr) -> relax.Expr:
        value = value if dtype_of(value) == inner else emit(relax.op.astype(value, inner))
        return emitter.reshaped(value, [-1] + [1] * (rank - 2))

    average = emit(relax.op.mean(wide, axes, keepdims=True))
    centred = emit(relax.op.subtract(wide, average))
    spread = emit(relax.op.mean(relax.op.multiply(centred, centred), axes, keepdims=True))
    epsilon = constant(node.attribute("epsilon", 1e-5), inner)
    result = emit(relax.op.multiply(centred, relax.op.rsqrt(relax.op.add(spread, epsilon))))
    result = emit(relax.op.add(relax.op.multiply(result, row(scale)), row(bias)))
    momentum = node.attribute("momentum", 0.9)

    def running(old: relax.Expr, new: relax.Expr) -> relax.Expr:
        kind = dtype_of(old)
        new = emitter.reshaped(new, emitter.shape(old))
        new = new if dtype_of(new) == kind else emit(relax.op.astype(new, kind))
        kept = relax.op.multiply(old, constant(momentum, kind))
        return emit(relax.op.add(kept, relax.op.multiply(new, constant(1 - momentum, kind))))

    result = result if inner == dtype else emit(relax.op.astype(result, dtype))
    return result, running(mean, average), running(variance, spread)
