"""Common divisors and multiples of whole numbers."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax, te, tirx

from ...node import Emitter, Node
from ..table import converts


@converts("gcd.default", "lcm.default")
def _common_divisor(emitter: Emitter, node: Node) -> relax.Expr:
    """The greatest common divisor by Euclid's steps, as many as two numbers of the type may take."""
    dtype, dims = node.result.dtype, node.result.shape
    operands = [emitter.broadcast(emitter.operand(node[one], dtype), dims) for one in ("self", "other")]
    left, right = (emitter.emit(relax.op.abs(one)) if dtype[0] == "i" else one for one in operands)
    steps = math.ceil(np.iinfo(dtype).bits / math.log2((1 + math.sqrt(5)) / 2)) + 2
    zero, one = tirx.const(0, dtype), tirx.const(1, dtype)

    def combined(before: tuple[tirx.Expr, ...], given: tuple[tirx.Expr, ...]) -> tuple[tirx.Expr, ...]:
        dividend, divisor, _ = before
        starts, ends = given[2].equal(0), divisor.equal(zero)
        rest = tirx.truncmod(dividend, tirx.Select(ends, one, divisor))
        return (
            tirx.Select(starts, given[0], tirx.Select(ends, dividend, divisor)),
            tirx.Select(starts, given[1], tirx.Select(ends, zero, rest)),
            given[2],
        )

    euclid = te.comm_reducer(combined, lambda *_: (zero, zero, tirx.const(0, "int32")), "euclid")

    def kernel(left: te.Tensor, right: te.Tensor) -> te.Tensor:
        step = te.reduce_axis((0, steps), "step")
        parts = te.compute(
            left.shape,
            lambda *at: euclid((left(*at), right(*at), step.var.astype("int32")), axis=step),
            "euclid",
        )
        return te.compute(left.shape, lambda *at: parts[0](*at), "divisor")

    divisor = emitter.builder.emit_te(kernel, left, right, primfunc_name_hint="common_divisor")
    if ".gcd." in node.operator:
        return divisor
    emit = emitter.emit
    nothing = emit(relax.op.equal(divisor, relax.const(0, dtype)))
    by = emit(relax.op.where(nothing, relax.const(1, dtype), divisor))
    return emit(relax.op.multiply(emit(relax.op.floor_divide(left, by)), right))
