"""Numbers whose sums are exact in float32, in any order: integers of up to four, scaled by powers of two.

A sum of 2^20 products of two such numbers has no more than 24 bits.  Weights are scaled so that sums are of
the order of one, where elementwise functions have something to show.
"""

from __future__ import annotations

from math import ceil, log2

import numpy as np

from tvm_mxplan.opcheck.estimate import Array

from .subject import Tensor

_LARGEST = 4


def fill(tensor: Tensor, depth: int, random: np.random.Generator) -> Array:
    """Numbers for an operand of a step whose sums have ``depth`` terms."""
    if tensor.data == "signs":
        return random.choice(np.array([1, -1, 1, -1, 2, -0.5], np.float32), tensor.shape)
    if tensor.data == "positive":
        return random.integers(1, _LARGEST + 1, tensor.shape).astype(np.float32)
    values = random.integers(-_LARGEST, _LARGEST + 1, tensor.shape).astype(np.float32)
    if tensor.data == "weights":
        values *= np.float32(2.0 ** -ceil(log2(max(1.0, 3 * depth**0.5))))
    return values


def second_operand(name: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Draws the second operand of a binary: divisors are powers of two, factors small."""
    if name == "div":
        return random.choice(np.array([1, -1, 2, -2, 0.5], np.float32), shape)
    if name == "mul":
        return random.choice(np.array([1, -1, 2, 0.5, 3], np.float32), shape)
    return random.integers(-_LARGEST, _LARGEST + 1, shape).astype(np.float32)
