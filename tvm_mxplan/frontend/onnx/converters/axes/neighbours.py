"""Normalization by what stands in neighbouring channels (LRN)."""

from __future__ import annotations

from tvm import relax, te, tirx

from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts


@converts("LRN")
def _local_response(emitter: Emitter, node: Node) -> Value:
    """Windows of an even size, other types and ranks: TVM's converter takes averages of windows of odd ones.

    A window reaches one channel farther forwards than backwards where its size is even.
    """
    data = emitter.tensor(node.input(0))
    rank, dtype, size = len(emitter.shape(data)), dtype_of(data), node.attributes["size"]
    if size % 2 and rank in (3, 4) and dtype == "float32":
        raise NotTaken
    emit = emitter.emit
    inner = "float64" if dtype == "float64" else "float32"
    wide = data if dtype == inner else emit(relax.op.astype(data, inner))

    def kernel(squares: te.Tensor) -> te.Tensor:
        channels = squares.shape[1]
        reach = te.reduce_axis((0, size), "reach")

        def element(*index: tirx.Var) -> tirx.Expr:
            place = list(index)
            place[1] = index[1] + reach.var - (size - 1) // 2
            inside = tirx.And(place[1] >= 0, place[1] < channels)
            return te.sum(
                tirx.if_then_else(inside, squares(*place), tirx.const(0, squares.dtype)), axis=reach
            )

        return te.compute(squares.shape, element, "window")

    squares = emit(relax.op.multiply(wide, wide))
    total = emitter.builder.emit_te(kernel, squares, primfunc_name_hint="neighbouring_channels")
    share = constant(node.attribute("alpha", 1e-4) / size, inner)
    scale = relax.op.add(relax.op.multiply(total, share), constant(node.attribute("bias", 1.0), inner))
    power = emit(relax.op.power(emit(scale), constant(node.attribute("beta", 0.75), inner)))
    result = emit(relax.op.divide(wide, power))
    return result if dtype == inner else emit(relax.op.astype(result, dtype))
