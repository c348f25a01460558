"""Vectors of channels that implementations compute at once, and the counting that goes by them."""

from __future__ import annotations

import math

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.machine import MachineRates

VECTOR = 16
VECTORS = {"avx2": 8, "sse41": 4}
"""Numbers in a vector of instruction sets narrower than the widest, which has ``VECTOR``."""


def vector_of(info: StepInfo) -> int:
    """Channels that an implementation computes at once."""
    return VECTORS.get(info.instruction_set, VECTOR)


def has_narrow_vectors(machine: MachineRates) -> bool:
    """Whether no instruction set of a machine has wider vectors than AVX2."""
    return all(one.instruction_set in VECTORS for one in machine.compute)


def whole(channels: int, vector: int) -> int:
    """Channels with those that fill the last vector."""
    return -(-channels // vector) * vector


def positions(shape: tuple[int, ...]) -> int:
    """Pixels of all samples of an image."""
    return shape[0] * math.prod(shape[2:])
