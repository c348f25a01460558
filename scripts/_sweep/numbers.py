"""Numbers whose sums are exact in float32, in any order: integers of up to four, scaled by powers of two.

A sum of 2^20 products of two such numbers has no more than 24 bits.  Weights are scaled so that sums are of
the order of one, where elementwise functions have something to show.

Integers of 8 bits go from one end of their type to the other, weights as far as sums of products stay exact
in float32.  They stand for real numbers of up to 16, weights for such that sums are a few units of one, and
integers that are written for steps of 1/32, so that results reach both ends of their type.
"""

from __future__ import annotations

from math import ceil, log2, sqrt

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.opcheck.estimate import Array

from .steps.subject import Tensor

_LARGEST = 4
_AT_ENDS = 0.05
"""The share of integers that are the least or the greatest of their type."""
_ZEROS = {"zero_uint8": (0, 1, 100, 128, 255), "zero_int8": (-128, -7, 0, 5, 127)}


def most_weight(depth: int) -> int:
    """The largest integer weight with which sums of ``depth`` products stay exact."""
    return max(1, min(128, 2**24 // (256 * depth) - 1))


def fill(tensor: Tensor, depth: int, random: np.random.Generator) -> Array:
    """Numbers for an operand of a step whose sums have ``depth`` terms, in its type."""
    return _filled(tensor, depth, random).astype(numpy_type(tensor.dtype), copy=False)


def _filled(tensor: Tensor, depth: int, random: np.random.Generator) -> Array:
    if tensor.data in ("integers", "integer_weights"):
        limits = np.iinfo(tensor.dtype)
        most = min(-limits.min, most_weight(depth)) if tensor.data == "integer_weights" else 0
        least, greatest = (-most, min(most, limits.max)) if most else (limits.min, limits.max)
        array = random.integers(least, greatest + 1, tensor.shape)
        at_ends = random.random(tensor.shape) < _AT_ENDS
        return np.where(at_ends, np.where(array < (least + greatest) / 2, least, greatest), array)
    if tensor.data.startswith("zero_"):
        return random.choice(np.array(_ZEROS[tensor.data]), tensor.shape)
    if tensor.data == "scale":
        base = -4 if tensor.role == "src_scale" else -5
        return np.exp2(base + random.integers(0, 2, tensor.shape))
    if tensor.data == "weights_scale":
        spread = sqrt(depth) * most_weight(depth) * 100 / 16
        return np.exp2(-ceil(log2(max(1.0, spread / 4))) - random.integers(0, 2, tensor.shape))
    if tensor.data == "few":
        return random.integers(0 if tensor.dtype[0] == "u" else -_LARGEST, _LARGEST + 1, tensor.shape)
    if tensor.data == "words":
        return random.integers(-(2**31), 2**31, tensor.shape)
    if tensor.data == "truths":
        return random.integers(0, 2, tensor.shape)
    if tensor.data == "indices":
        return random.integers(-tensor.below, tensor.below, tensor.shape)
    if tensor.data == "fine":
        return random.integers(-160, 161, tensor.shape) / np.float32(16)
    if tensor.data == "places":
        return random.integers(-64, 65, tensor.shape) / np.float32(48)
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
