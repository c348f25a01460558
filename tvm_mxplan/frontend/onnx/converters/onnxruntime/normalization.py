"""Normalizations of a sum: SkipLayerNormalization and the simplified ones, which leave the mean in."""

from __future__ import annotations

from tvm import relax

from ...node import Emitter, Node
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts

_DOMAIN = "com.microsoft"


@converts("SkipLayerNormalization", domain=_DOMAIN)
def _skip_layer_normalization(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    total = _sum(emitter, node, node.input(4))
    result = layer_normalized(emitter, total, node.input(2), node.input(3), node.attribute("epsilon", 1e-12))
    return result, None, None, total


@converts("SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def _skip_simplified(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    total = _sum(emitter, node, node.input(3))
    return _simplified(emitter, total, node.input(2), node.attribute("epsilon", 1e-12)), None, None, total


@converts("SimplifiedLayerNormalization")
@converts("SimplifiedLayerNormalization", domain=_DOMAIN)
def _simplified_layer_normalization(emitter: Emitter, node: Node) -> Value:
    """By the root of the mean square over the axes from one on."""
    data = emitter.tensor(node.input(0))
    axis = node.attribute("axis", -1) % emitter.rank(data)
    return _simplified(emitter, data, node.input(1), node.attribute("epsilon", 1e-5), axis)


def _sum(emitter: Emitter, node: Node, bias: Value) -> relax.Expr:
    total = emitter.emit(relax.op.add(emitter.tensor(node.input(0)), emitter.tensor(node.input(1))))
    return total if bias is None else emitter.emit(relax.op.add(total, emitter.tensor(bias)))


def layer_normalized(
    emitter: Emitter, data: relax.Expr, scale: Value, bias: Value, epsilon: float
) -> relax.Expr:
    """The last axis with a mean of zero and a deviation of one."""
    scale = emitter.tensor(scale)
    shift = emitter.emit(relax.op.zeros_like(scale)) if bias is None else emitter.tensor(bias)
    return emitter.emit(relax.op.nn.layer_norm(data, scale, shift, [-1], epsilon))


def _simplified(
    emitter: Emitter, data: relax.Expr, scale: Value, epsilon: float, axis: int | None = None
) -> relax.Expr:
    emit, dtype = emitter.emit, dtype_of(data)
    last = emitter.rank(data) - 1
    if axis in (None, last) and dtype == "float32":
        return emit(relax.op.nn.rms_norm(data, emitter.tensor(scale), [last], epsilon))
    axes = list(range(last if axis is None else axis, last + 1))
    wide = data if dtype == "float32" else emit(relax.op.astype(data, "float32"))
    squares = emit(relax.op.mean(relax.op.multiply(wide, wide), axes, keepdims=True))
    root = relax.op.rsqrt(relax.op.add(squares, constant(epsilon, "float32")))
    result = emit(relax.op.multiply(wide, root))
    result = result if dtype == "float32" else emit(relax.op.astype(result, dtype))
    return emit(relax.op.multiply(result, emitter.tensor(scale)))
