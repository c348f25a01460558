"""Operators on integers that onnxruntime's quantiser writes, as real ones between conversions.

QLinearAdd(a, b)       quantize(dequantize(a) + dequantize(b))
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...dimensions.dims import product
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of, rank_of, shape_of
from ..real import Integers, operator, real, whole
from ..table import converts

_DOMAIN = "com.microsoft"
_PAIRS = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
_SINGLES = {
    "QLinearSigmoid": "Sigmoid",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
}


@converts(*_PAIRS, domain=_DOMAIN)
def _pair(emitter: Emitter, node: Node) -> Value:
    left, right = real(emitter, node, Integers(0, 1, 2)), real(emitter, node, Integers(3, 4, 5))
    result = operator(emitter, node, _PAIRS[node.op_type], [left, right])
    return whole(emitter, node, result, Integers(-1, 6, 7), dtype_of(node.input(0)))


@converts(*_SINGLES, domain=_DOMAIN)
def _single(emitter: Emitter, node: Node) -> Value:
    data = real(emitter, node, Integers(0, 1, 2))
    last = len(emitter.shape(data)) - 1 if node.attribute("channels_last", 0) else 0
    if last:
        data = emitter.emit(relax.op.permute_dims(data, [0, last, *range(1, last)]))
    result = operator(emitter, node, _SINGLES[node.op_type], [data])
    if last:
        result = emitter.emit(relax.op.permute_dims(result, [0, *range(2, last + 1), 1]))
    return whole(emitter, node, result, Integers(-1, 3, 4), dtype_of(node.input(0)))


@converts("QLinearSoftmax", domain=_DOMAIN)
def _softmax(emitter: Emitter, node: Node) -> Value:
    """Along an axis, or over all axes from one on as Softmax had it before opset 13."""
    data = real(emitter, node, Integers(0, 1, 2))
    axis, dims = int(node.attribute("axis", -1)), emitter.shape(data)
    before_13 = node.attribute("opset", 13) < 13
    if before_13:
        first = axis % len(dims)
        data = emitter.reshaped(data, [product(dims[:first]), product(dims[first:])])
    result = emitter.emit(relax.op.nn.softmax(data, axis=-1 if before_13 else axis))
    result = emitter.reshaped(result, dims) if before_13 else result
    return whole(emitter, node, result, Integers(-1, 3, 4), dtype_of(node.input(0)))


@converts("QLinearConcat", domain=_DOMAIN)
def _concat(emitter: Emitter, node: Node) -> Value:
    pieces = [real(emitter, node, Integers(at, at + 1, at + 2)) for at in range(2, len(node.inputs), 3)]
    result = emitter.emit(relax.op.concat(pieces, axis=int(node.attribute("axis"))))
    return whole(emitter, node, result, Integers(-1, 0, 1), dtype_of(node.input(2)))


@converts("QGemm", domain=_DOMAIN)
def _gemm(emitter: Emitter, node: Node) -> Value:
    transposed = bool(node.attribute("transB", 0))
    weights = Integers(3, 4, 5, 0 if transposed else 1)
    left, right = real(emitter, node, Integers(0, 1, 2)), real(emitter, node, weights)
    operands: list[relax.Expr | Value] = [left, right]
    if node.input(6) is not None:
        operands.append(_bias(node, len(shape_of(right) or ())))
    given = {name: node.attributes[name] for name in ("alpha", "transA", "transB") if name in node.attributes}
    result = operator(emitter, node, "Gemm", operands, **{"beta": 1.0, **given})
    if node.input(7) is None:
        return result
    return whole(emitter, node, result, Integers(-1, 7, 8), dtype_of(node.input(0)))


def _bias(node: Node, rank: int) -> np.ndarray:
    """The bias as real numbers: integers in the scale of the product."""
    bias, left, right = (node.input(at) for at in (6, 1, 4))
    if rank_of(node.input(6)) is None or not all(isinstance(one, np.ndarray) for one in (bias, left, right)):
        raise NotTaken
    scale = np.asarray(left, "float32") * np.asarray(right, "float32").reshape(-1)
    return (np.asarray(bias, "float64") * scale * node.attribute("alpha", 1.0)).astype("float32")
