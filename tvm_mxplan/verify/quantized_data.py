"""Operands of integers for one run of a kernel, and the scales and zero points that they stand by.

Integers reach both ends of their types, weights as far as float32 holds every sum of products.  Scales are
powers of two, such that sums are a few units of one around 0, and results in integers reach both of their
ends, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

from .drawing import Array, drawn

_EXACT = 2**24
_WIDEST = 127
_OF_SOURCE = 260
"""The largest absolute value of an integer less its zero point."""
_UNITS = 4.0
_STEPS = 32.0
"""Steps of an integer result in one."""
_FINE = 16.0
_LARGEST = 32.0
_REAL = {"float32": 512, "bfloat16": 256}
"""Steps in the largest number that is converted, by types that have a place for each."""


def integer_operand(program: ir.Program, role: str, value: ir.Value, place: int, terms: int) -> Array | None:
    """Numbers for an operand of a step with scales; None for one of real numbers.

    Parameters
    ----------
    terms : products in each sum of the step; 0 for a conversion.
    """
    shape = static_shape(value.shape)
    if role in ir.SCALE_ROLES:
        return _SCALES[role](program, shape, place, terms).astype(value.dtype)
    if value.dtype == "uint8":
        return (drawn(shape, place, _WIDEST) + np.float32(_WIDEST + 1)).astype("uint8")
    if value.dtype == "int8":
        return drawn(shape, place, _most(terms) if role == "weights" else _WIDEST).astype("int8")
    if terms or role != "src":
        return None
    most = _REAL[value.dtype]
    return drawn(shape, place, most, most / _LARGEST).astype(numpy_type(value.dtype))


def _most(terms: int) -> int:
    """The largest weight with which sums stay exact."""
    return max(1, min(_WIDEST, _EXACT // (_OF_SOURCE * max(terms, 1))))


def _src_scale(_program: ir.Program, shape: tuple[int, ...], place: int, terms: int) -> Array:
    return np.full(shape, 1.0 if terms else 1 / _FINE, np.float32) * np.exp2(np.arange(shape[0]) % 2)


def _weights_scale(_program: ir.Program, shape: tuple[int, ...], place: int, terms: int) -> Array:
    spread = math.sqrt(terms) * _most(terms) * _WIDEST / 2
    return np.exp2(-round(math.log2(max(spread / _UNITS, 1.0))) - (np.arange(shape[0]) + place) % 2)


def _dst_scale(_program: ir.Program, shape: tuple[int, ...], place: int, terms: int) -> Array:
    return np.full(shape, 1 / _STEPS if terms else 2 / _FINE, np.float32) * np.exp2(np.arange(shape[0]) % 2)


def _zero_point(side: str) -> Callable[[ir.Program, tuple[int, ...], int, int], Array]:
    def numbers(program: ir.Program, shape: tuple[int, ...], place: int, _terms: int) -> Array:
        unsigned = program.values[program.steps[0].operand(side)].dtype == "uint8"
        return np.abs(drawn(shape, place, 3)) + np.float32(1) if unsigned else drawn(shape, place, 3)

    return numbers


_SCALES: dict[str, Callable[[ir.Program, tuple[int, ...], int, int], Array]] = {
    "src_scale": _src_scale,
    "weights_scale": _weights_scale,
    "dst_scale": _dst_scale,
    "src_zero_point": _zero_point("src"),
    "dst_zero_point": _zero_point("dst"),
}
