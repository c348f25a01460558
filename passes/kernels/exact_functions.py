"""``ExactFunctions``: functions of one number of which TVM's kernels lose digits, or NaN.

Before   y = R.nn.softplus(x)              log(1 + exp(x)): 0 from -17 down, and without digits above
After    y = R.call_tir(softplus, (x,))    max(x, 0) + log(1 + t), t = exp(-|x|), by a series in t / (2 + t)

Before   y = R.sign(x)                     0 for NaN
After    y = R.call_tir(sign, (x,))        NaN, as libraries have it

Before   y = R.astype(x, "bfloat16")       TVM computes bfloat16 in float32; in a kernel that casts back it
                                           leaves both casts out
After    y = R.call_tir(cast_to_bfloat16, (x,))    the nearest number of bfloat16, by its bits
"""

from __future__ import annotations

import tvm
from tvm import relax, te, tirx

from ..canonicalize.rewriter import is_call_to
from .replace_calls import REAL_TYPES, is_tensor_of, replace_calls

_TERMS = 9  # of the series, whose argument is at most 1/3
_WIDER = ("float32", "float64")


@tvm.transform.module_pass(opt_level=0, name="ExactFunctions")
class ExactFunctions:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _exact)


def _exact(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if is_call_to(call, "nn.softplus"):
        source, attrs = call.args[0], call.attrs
        if not is_tensor_of(_WIDER, source):
            return None
        beta, threshold = float(attrs.beta), float(attrs.threshold)
        return builder.call_te(_softplus, source, beta, threshold, primfunc_name_hint="softplus")
    if is_call_to(call, "sign") and is_tensor_of(REAL_TYPES, call.args[0]):
        return builder.call_te(_sign, call.args[0], primfunc_name_hint="sign")
    if is_call_to(call, "astype") and str(call.ty.dtype) == "bfloat16" and is_tensor_of(_WIDER, call.args[0]):
        return builder.call_te(_bfloat16, call.args[0], primfunc_name_hint="cast_to_bfloat16")
    return None


def _softplus(data: te.Tensor, beta: float, threshold: float) -> te.Tensor:
    dtype = data.dtype

    def number(value: float) -> tirx.Expr:
        return tirx.const(value, dtype)

    def element(*index: tirx.Var) -> tirx.Expr:
        x = data(*index) * number(beta)
        t = tirx.exp(number(0) - tirx.abs(x))
        if dtype == "float64":
            log = tirx.log1p(t)
        else:  # log(1 + t) = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = t / (2 + t)
            s = t / (number(2) + t)
            square, series = s * s, number(0)
            for term in reversed(range(_TERMS)):
                series = series * square + number(2 / (2 * term + 1))
            log = s * series
        found = (tirx.Select(x > number(0), x, number(0)) + log) / number(beta)
        return tirx.Select(x > number(threshold), data(*index), found)

    return te.compute(data.shape, element, "softplus")


def _sign(data: te.Tensor) -> te.Tensor:
    one, zero, less = (tirx.const(number, data.dtype) for number in (1, 0, -1))

    def element(*index: tirx.Var) -> tirx.Expr:
        x = data(*index)
        return tirx.Select(x > zero, one, tirx.Select(x < zero, less, x))  # a zero, or no number

    return te.compute(data.shape, element, "sign")


def bits_of_bfloat16(number: tirx.Expr) -> tirx.Expr:
    """The bits of the number of bfloat16 nearest to one of float32, half to even, in a word's lower half."""
    bits = tirx.reinterpret("uint32", number)
    half, one, by = tirx.const(0x7FFF, "uint32"), tirx.const(1, "uint32"), tirx.const(16, "uint32")
    rounded = (bits + half + ((bits >> by) & one)) >> by
    return tirx.Select(tirx.isnan(number), tirx.const(0x7FC0, "uint32"), rounded)


def _bfloat16(data: te.Tensor) -> te.Tensor:
    def element(*index: tirx.Var) -> tirx.Expr:
        bits = bits_of_bfloat16(data(*index).astype("float32"))
        return tirx.reinterpret("bfloat16", bits.astype("uint16"))

    return te.compute(data.shape, element, "cast_to_bfloat16")
