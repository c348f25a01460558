"""Products of matrices, with elements of the operands' type; TVM's converters ask for float32 always."""

from __future__ import annotations

from typing import Any

from tvm import relax

from ..node import Emitter, Node, dims_of
from .table import converts


@converts("mm.default", "bmm.default", "matmul.default", "mv.default", "dot.default")
def _product(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = list(node.operands.values())[:2]
    return emitter.emit(relax.op.matmul(left, right))


@converts("linear.default")
def _linear(emitter: Emitter, node: Node) -> relax.Expr:
    axes = [1, 0] if len(dims_of(node["weight"])) == 2 else None
    weights = emitter.emit(relax.op.permute_dims(node["weight"], axes))
    result = emitter.emit(relax.op.matmul(node["input"], weights))
    return result if node["bias"] is None else emitter.emit(relax.op.add(result, node["bias"]))


@converts("addmm.default", "addmv.default", "baddbmm.default", "addbmm.default")
def _sum_with_product(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = list(node.operands.values())[1:3]
    result = _scaled(emitter, emitter.emit(relax.op.matmul(left, right)), node["alpha"], node)
    if node.operator == "aten.addbmm.default":
        result = emitter.emit(relax.op.sum(result, 0))
    if node["beta"] == 0:  # the operand is not even read: its NaNs do not count
        return result
    return emitter.emit(relax.op.add(result, _scaled(emitter, node["self"], node["beta"], node)))


def _scaled(emitter: Emitter, tensor: relax.Expr, factor: Any, node: Node) -> relax.Expr:
    if isinstance(factor, int | float) and factor == 1:
        return tensor
    return emitter.emit(relax.op.multiply(tensor, emitter.scalar(factor, node.result.dtype)))
