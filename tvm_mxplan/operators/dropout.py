"""Dropout in training as an operator of Relax: ``mxplan.dropout``.

    R.mxplan.dropout(data, key, rate, stream)

    data   of any shape
    key    (2) of int64: the seed and the number of the step
    rate   the share of elements that become 0; the others are divided by 1 - rate

Whether an element is dropped follows from the key, ``stream`` (another number for each dropout of a model)
and its index, by rounds of a hash.  The same key gives the same elements, so a step repeats bit for bit, and
the gradient is the same operator on the gradient: no mask is kept.
"""

from __future__ import annotations

import tvm
from tvm import relax, te, tirx

from .registration import Operator, same_type


def dropout(data: relax.Expr, key: relax.Expr, rate: float, stream: int) -> relax.Call:
    """The call of the operator."""
    return DROPOUT.call(data, key, rate=float(rate), stream=int(stream))


def _type(call: relax.Call) -> tvm.ir.Type:
    return same_type(call.args[0])


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    rate, stream = float(call.attrs["rate"]), int(call.attrs["stream"])

    def compute(data: te.Tensor, key: te.Tensor) -> te.Tensor:
        zero = tirx.const(0, data.dtype)
        factor = tirx.const(1 / (1 - rate) if rate < 1 else 0.0, data.dtype)
        bound = tirx.const(round(rate * 2**31), "int64")

        def element(*index: tirx.Expr) -> tirx.Expr:
            flat: tirx.Expr = tirx.const(0, "int64")
            for at, extent in zip(index, data.shape, strict=True):
                flat = flat * tirx.const(int(extent), "int64") + tirx.Cast("int64", at)
            bits = _mixed(flat + tirx.const(stream * 0x1E3779B1 % 2**31, "int64"))
            for part in range(2):
                bits = _mixed(bits ^ (key(part) & _number(_BITS)))
            return tirx.Select(bits < bound, zero, data(*index) * factor)

        return te.compute(data.shape, element, "dropout")

    return builder.call_te(compute, *call.args, primfunc_name_hint="dropout")


_BITS = 2**31 - 1
"""Of a number; products of two of them stay within 63 bits."""


def _number(value: int) -> tirx.Expr:
    return tirx.const(value, "int64")


def _mixed(bits: tirx.Expr) -> tirx.Expr:
    """A round of a hash in which each bit of a number moves all others."""
    bits = bits & _number(_BITS)
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        bits = ((bits ^ (bits >> _number(shift))) * _number(factor)) & _number(_BITS)
    return bits ^ (bits >> _number(15))


DROPOUT = Operator("dropout", "dropout in training", _type, _legalize)
