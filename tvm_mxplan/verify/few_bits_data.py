"""Operands of products with matrices of few bits, on which sums are exact in float32.

Numbers lie around the middle of what their bits have, as far on either side as sums allow, zero points next
to the middle.  Scales are powers of two by which sums are a few units of one.
"""

from __future__ import annotations

import math

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError

from .drawing import Array, drawn

_EXACT = 2**24
_SRC = 3
"""The largest number of a row."""
_WORD_BITS = 32


def few_bits_operand(attrs: ir.FewBitsProduct, program: ir.Program, role: str, place: int) -> Array:
    """Numbers for the operand in a role.

    Raises
    ------
    UnsupportedError : no small integers have exact sums of that length.
    """
    step = program.steps[0]
    value = program.values[step.operand(role)]
    shape, dtype = static_shape(value.shape), numpy_type(value.dtype)
    depth = static_shape(program.values[step.operand("src")].shape)[-1]
    middle = 2 ** (attrs.bits - 1)
    # A number less its zero point, in halves of the scale.
    most = min(middle - 1, _EXACT // (4 * _SRC * depth) - 1)
    if most < 1:
        raise UnsupportedError(f"sums of {depth} products")
    if role == "src":
        return drawn(shape, place, _SRC)
    if role == "numbers":
        of_word = _WORD_BITS // attrs.bits
        numbers = (drawn((*shape, of_word), place, most) + middle).astype("uint64")
        words = (numbers << (np.arange(of_word, dtype="uint64") * np.uint64(attrs.bits))).sum(
            -1, dtype="uint64"
        )
        return words.astype("uint32").view("int32")
    if role == "zero_points":
        return (middle + drawn(shape, place, 1)).astype(dtype)
    spread = math.sqrt(depth) * most * _SRC / 2
    return (np.exp2(drawn(shape, place, 1) > 0) * 2.0 ** -max(0, round(math.log2(spread)))).astype(dtype)
