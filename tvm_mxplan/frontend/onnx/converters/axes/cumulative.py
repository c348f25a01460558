"""Sums and products along an axis, forwards and backwards, with and without the element itself."""

from __future__ import annotations

import numpy as np
from tvm import relax, te, tirx

from .....errors import InvalidInputError
from ...node import Emitter, Node
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts


@converts("CumSum", "CumProd")
def _cumulative(emitter: Emitter, node: Node) -> Value:
    data, axis = emitter.tensor(node.input(0)), node.input(1)
    dims = emitter.shape(data)
    if any(isinstance(dim, int) and dim == 0 for dim in dims):
        return data
    rank = len(dims)
    if not rank:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: an operand without axes; expected one to go along"
        )
    if isinstance(axis, np.ndarray):
        return _along(emitter, node, data, _position(emitter, node, int(axis.reshape(-1)[0]), rank))
    # The model computes the axis: all are tried, and the one that is meant is taken.
    chosen = emitter.emit(relax.op.reshape(relax.op.astype(emitter.tensor(axis), "int64"), []))
    result = _along(emitter, node, data, 0)
    for other in range(1, rank):
        here = relax.op.logical_or(
            relax.op.equal(chosen, constant(other, "int64")),
            relax.op.equal(chosen, constant(other - rank, "int64")),
        )
        result = emitter.emit(relax.op.where(here, _along(emitter, node, data, other), result))
    return result


def _position(emitter: Emitter, node: Node, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: axis {axis} of a tensor of {rank} dimensions; "
            f"expected {-rank} to {rank - 1}"
        )
    return axis % rank


def _along(emitter: Emitter, node: Node, data: relax.Expr, axis: int) -> relax.Expr:
    emit, dtype = emitter.emit, dtype_of(data)
    backwards = bool(node.attribute("reverse", 0))
    exclusive, sums = bool(node.attribute("exclusive", 0)), node.op_type == "CumSum"
    turned = emit(relax.op.flip(data, axis)) if backwards else data
    extent = emitter.shape(data)[axis]
    if exclusive and not (sums and isinstance(extent, int) and extent > 0):
        turned, exclusive = _behind_start(emitter, turned, axis, 0 if sums else 1), False
    operator = relax.op.cumsum if sums else relax.op.cumprod
    result = emit(operator(turned, axis, dtype, exclusive))
    return emit(relax.op.flip(result, axis)) if backwards else result


def _behind_start(emitter: Emitter, data: relax.Expr, axis: int, start: int) -> relax.Expr:
    """The elements one place later, and what a sum starts with in the first."""
    dtype = dtype_of(data)

    def kernel(tensor: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            before = list(index)
            before[axis] = tirx.max(index[axis] - 1, tirx.const(0, "int64"))
            return tirx.if_then_else(index[axis] > 0, tensor(*before), tirx.const(start, dtype))

        return te.compute(tensor.shape, element, "shifted")

    return emitter.builder.emit_te(kernel, data, primfunc_name_hint="shift")
