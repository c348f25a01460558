"""Products and the activations around them: FusedMatMul, and gelus with a bias."""

from __future__ import annotations

from tvm import relax

from ...node import Emitter, Node
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts

_DOMAIN = "com.microsoft"


@converts("Gelu", "BiasGelu", domain=_DOMAIN)
def _gelu(emitter: Emitter, node: Node) -> Value:
    return emitter.emit(relax.op.nn.gelu(_with_bias(emitter, node)))


@converts("FastGelu", domain=_DOMAIN)
def _fast_gelu(emitter: Emitter, node: Node) -> Value:
    return emitter.emit(relax.op.nn.gelu_tanh(_with_bias(emitter, node)))


def _with_bias(emitter: Emitter, node: Node) -> relax.Expr:
    data, bias = emitter.tensor(node.input(0)), node.input(1)
    return data if bias is None else emitter.emit(relax.op.add(data, emitter.tensor(bias)))


@converts("QuickGelu", domain=_DOMAIN)
def _quick_gelu(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    alpha = constant(node.attribute("alpha", 1.702), dtype_of(data))
    return emitter.emit(relax.op.multiply(data, relax.op.sigmoid(relax.op.multiply(data, alpha))))


@converts("FusedMatMul", domain=_DOMAIN)
def _fused_product(emitter: Emitter, node: Node) -> Value:
    """A product of operands that are transposed first, times a number."""
    left, right = (
        _turned(emitter, node, emitter.tensor(node.input(at)), side) for at, side in enumerate("AB")
    )
    result = emitter.emit(relax.op.matmul(left, right))
    alpha = node.attribute("alpha", 1.0)
    if alpha == 1.0:
        return result
    return emitter.emit(relax.op.multiply(result, constant(alpha, dtype_of(result))))


def _turned(emitter: Emitter, node: Node, data: relax.Expr, side: str) -> relax.Expr:
    rank = emitter.rank(data)
    order = list(range(rank))
    if node.attribute(f"transBatch{side}", 0) and rank > 2:
        order = [*order[1:-1], order[0], order[-1]]
    if node.attribute(f"trans{side}", 0) and rank > 1:
        order[-2:] = reversed(order[-2:])
    return data if order == list(range(rank)) else emitter.emit(relax.op.permute_dims(data, order))
