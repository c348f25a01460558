"""Casts between floating-point numbers and those of 8 bits, which TVM's code generator gets wrong.

From 8 bits: a table of the 256 numbers.  To 8 bits: round half to even in float32, and build the bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import onnx
from tvm import relax, te, tirx

from ....errors import UnsupportedError
from ...rounding import round_to_bfloat16
from .. import stock
from ..node import Emitter, Node
from ..values import Value, dtype_of
from .numbers import constant
from .table import converts

SMALL = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_SCALES = "float8_e8m0fnu"
_TINY = ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")


@converts("Cast", "CastLike")
def _cast(emitter: Emitter, node: Node) -> Value:
    data = node.input(0)
    of = dtype_of(data)
    if node.op_type == "CastLike":
        to = dtype_of(node.input(1))
    else:
        stated = node.attributes["to"]
        if isinstance(stated, bytes):  # before version 6, a type's name
            stated = onnx.TensorProto.DataType.Value(stated.decode().upper())
            node = replace(node, attributes={"to": stated})
        to = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(stated)))
    for dtype in (of, to):
        if dtype in _TINY or (to == _SCALES and of != to):
            raise UnsupportedError(
                f"{emitter.importer.called(node)}: a cast from {of} to {to} when the model runs; "
                "expected other types, of 8 bits and more, or operands that are known"
            )
    if of == to and isinstance(data, relax.Expr):
        return data
    if to == "bfloat16" and of in ("float32", "float64") and node.as_real:
        return _rounded(emitter, emitter.tensor(data))
    if to in SMALL and of != to:
        wide = from_small(emitter, emitter.tensor(data), "float32")
        return to_small(emitter, wide, to, saturate=bool(node.attribute("saturate", 1)))
    if of in (*SMALL, _SCALES) and of != to:
        return from_small(emitter, emitter.tensor(data), to)
    (result,) = stock.converted(emitter, node)
    return result


def _rounded(emitter: Emitter, data: relax.Expr) -> relax.Expr:
    """Numbers of bfloat16, rounded before the cast."""
    wide = data if dtype_of(data) == "float32" else emitter.emit(relax.op.astype(data, "float32"))
    return emitter.emit(relax.op.astype(round_to_bfloat16(emitter.builder, wide), "bfloat16"))


def from_small(emitter: Emitter, data: relax.Expr, to: str) -> relax.Expr:
    """Numbers of 8 bits, or others, as another type."""
    of = dtype_of(data)
    if of not in (*SMALL, _SCALES):
        return data if of == to else emitter.emit(relax.op.astype(data, to))
    numbers = np.arange(256, dtype="uint8").view(np.dtype(getattr(ml_dtypes, of))).astype("float32")

    def kernel(tensor: te.Tensor, numbers: te.Tensor) -> te.Tensor:
        return te.compute(
            tensor.shape,
            lambda *index: numbers[tirx.reinterpret("uint8", tensor(*index)).astype("int32")],
            "wide",
        )

    wide = emitter.builder.emit_te(
        kernel, data, constant(numbers, "float32"), primfunc_name_hint="from_8_bits"
    )
    return wide if to == "float32" else emitter.emit(relax.op.astype(wide, to))


@dataclass(frozen=True)
class _Format:
    """The structure of numbers of 8 bits.

    Attributes
    ----------
    fraction, bias : bits of the fraction, and what is added to exponents.
    largest : the largest finite number.
    nan, infinity : their bits without the sign; None where there is no infinity.
    signed_nan : whether NaN has a sign, and so has zero.
    """

    fraction: int
    bias: int
    largest: float
    nan: int
    infinity: int | None
    signed_nan: bool


_FORMATS = {
    "float8_e4m3fn": _Format(3, 7, 448.0, 0x7F, None, True),
    "float8_e4m3fnuz": _Format(3, 8, 240.0, 0x80, None, False),
    "float8_e5m2": _Format(2, 15, 57344.0, 0x7F, 0x7C, True),
    "float8_e5m2fnuz": _Format(2, 16, 57344.0, 0x80, None, False),
}


def to_small(emitter: Emitter, data: relax.Expr, to: str, *, saturate: bool) -> relax.Expr:
    """Numbers of float32 in 8 bits, by ONNX's table of what becomes of those that are too large."""
    form = _FORMATS[to]
    beyond = form.nan if form.infinity is None else form.infinity
    least = 1 - form.bias  # exponent of the smallest normal number

    def bits_of(number: int) -> tirx.Expr:
        return tirx.const(number, "int64")

    def kernel(tensor: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            raw = tirx.reinterpret("uint32", tensor(*index)).astype("int64")
            magnitude = raw & bits_of(0x7FFFFFFF)
            sign = (raw >> 24) & bits_of(0x80)
            exponent = tirx.max((magnitude >> 23) - 127, bits_of(least))
            # The number in units of its last place: exact, since that is a power of two.
            unit = _as_float((127 - exponent + form.fraction) << 23)
            scaled = _as_float(magnitude) * unit
            units = tirx.nearbyint(tirx.min(scaled, tirx.const(2.0**20, "float32"))).astype("int64")
            # A number of all ones becomes the next power of two by itself: fraction and exponent are one row.
            built = ((exponent - least) << form.fraction) + units
            largest = bits_of(_bits(form, form.largest))
            too_large = built > largest
            full = largest if saturate else bits_of(beyond)
            infinite = magnitude.equal(0x7F800000)
            built = tirx.Select(tirx.Or(too_large, infinite), full, built)
            is_nan = magnitude > bits_of(0x7F800000)
            built = tirx.Select(is_nan, bits_of(form.nan), built)
            if form.signed_nan:
                return tirx.reinterpret(to, (built | sign).astype("uint8"))
            unsigned = tirx.Or(built.equal(0), built.equal(form.nan))
            return tirx.reinterpret(to, tirx.Select(unsigned, built, built | sign).astype("uint8"))

        return te.compute(tensor.shape, element, "small")

    return emitter.builder.emit_te(kernel, data, primfunc_name_hint="to_8_bits")


def _as_float(bits: tirx.Expr) -> tirx.Expr:
    return tirx.reinterpret("float32", bits.astype("uint32"))


def _bits(form: _Format, number: float) -> int:
    """The bits of a finite number."""
    fraction, exponent = np.frexp(number)
    place = int(exponent) - 1
    return ((place - (1 - form.bias)) << form.fraction) + round(float(fraction) * 2 ** (form.fraction + 1))
