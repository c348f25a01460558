"""Matrices whose numbers have few bits, as an operator of Relax: ``mxplan.few_bits``.

    R.mxplan.few_bits(numbers, scales, zero_points, bits=4, block=32, depth=K) -> float32 (N, K)

    numbers      int32 (1, N, W)    words, each with 32 / bits numbers of a row, the lowest bits first
    scales       float32 (1, N, B)  one for each block of a row's numbers
    zero_points  uint8 or float32 (1, N, B); may be missing: half of the numbers that the bits have
    result       scales[n, b] * (number[n, k] - zero_points[n, b]), where b is the block of k

A library that multiplies by such matrices takes the operator with the product that reads it.  Where none
does, a matrix of constants becomes one of real numbers when operators are legalized.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax

from ..registration import Operator

WORD_BITS = 32
LEAST_BLOCK = 16
"""Blocks are multiples of it, so that they are whole words of any number of bits."""


@dataclass(frozen=True)
class FewBits:
    """A matrix ``[N, K]`` of few bits.

    Attributes
    ----------
    numbers : unsigned, ``[N, K]``.
    scales : ``[N, B]``.
    zero_points : ``[N, B]``; None where half of the numbers stands for 0.
    block : of numbers along K that share a scale; a multiple of 16.
    """

    numbers: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray | None
    bits: int
    block: int

    def expression(self) -> relax.Expr:
        """The matrix as a call of the operator on constants."""
        operands = [
            pack_words(self.numbers, self.bits)[None],
            np.ascontiguousarray(self.scales[None], "float32"),
        ]
        if self.zero_points is not None:
            whole = self.zero_points.dtype == np.uint8
            operands.append(np.ascontiguousarray(self.zero_points[None], "uint8" if whole else "float32"))
        constants = [relax.const(array) for array in operands]
        return few_bits(*constants, bits=self.bits, block=self.block, depth=self.numbers.shape[1])


def few_bits(*operands: relax.Expr, bits: int, block: int, depth: int) -> relax.Call:
    """The call of the operator; see the module's text."""
    return FEW_BITS.call(*operands, bits=bits, block=block, depth=depth)


def pack_words(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Words of a matrix of unsigned numbers: ``[N, K]`` as int32 ``[N, W]``, zeros behind the last number."""
    of_word = WORD_BITS // bits
    rows, depth = numbers.shape
    filled = np.zeros((rows, -(-depth // of_word) * of_word), "uint8")
    filled[:, :depth] = numbers
    of_byte = 8 // bits
    parts = filled.reshape(rows, -1, of_byte) << (np.arange(of_byte, dtype="uint8") * bits).astype("uint8")
    return np.ascontiguousarray(np.bitwise_or.reduce(parts, axis=-1)).view("<i4")


def unpack_words(words: np.ndarray, bits: int, depth: int) -> np.ndarray:
    """The inverse of :func:`pack_words`, in uint8."""
    shifts = np.arange(0, 8, bits, dtype="uint8")
    parts = (np.ascontiguousarray(words, "<i4").view("uint8")[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*words.shape[:-1], -1)[..., :depth]


def real_matrix(
    numbers: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    *,
    bits: int,
    block: int,
    depth: int,
    dtype: str = "float32",
) -> np.ndarray:
    """The real numbers of a matrix by the operator's operands: ``[N, K]``."""
    at = np.arange(depth) // block
    points = 2.0 ** (bits - 1) if zero_points is None else zero_points[0][:, at].astype(dtype)
    whole = unpack_words(numbers[0], bits, depth).astype(dtype)
    return np.asarray((whole - points) * scales[0][:, at].astype(dtype), dtype)


def attributes_of(call: relax.Call) -> dict[str, int]:
    """Bits, block and depth of a call."""
    return {name: int(call.attrs[name]) for name in ("bits", "block", "depth")}


def _infer(call: relax.Call) -> tvm.ir.Type:
    rows = call.args[0].ty.shape.values[1]
    return relax.TensorType([rows, int(call.attrs["depth"])], "float32")


def _real(_builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    numbers, scales, *points = (operand.value.numpy() for operand in call.args)
    kind = attributes_of(call)
    real = real_matrix(
        numbers,
        scales,
        points[0] if points else None,
        bits=kind["bits"],
        block=kind["block"],
        depth=kind["depth"],
    )
    return relax.const(real, "float32")


FEW_BITS = Operator("few_bits", "a matrix whose numbers have few bits, in blocks", _infer, _real)
