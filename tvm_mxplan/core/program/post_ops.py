"""Post-ops: what the primitive of a step does to its result before it is written, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class EltwisePostOp:
    """dst = algorithm(dst; alpha, beta)."""

    algorithm: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class BinaryPostOp:
    """dst = dst (algorithm) value, broadcast to dst's shape."""

    algorithm: str
    value: int


@dataclass(frozen=True)
class SumPostOp:
    """dst = dst + what dst's bytes held before.

    dst is an alias of the value that is added; an output that is none adds what the caller's tensor holds.
    """

    scale: float = 1.0


@dataclass(frozen=True)
class DepthwisePostOp:
    """dst = depthwise convolution of dst, whose size along both spatial axes it may change.

    Square ``kernel``, the same ``stride`` and ``padding`` along both axes; the step's operands
    ``depthwise_weights`` and ``depthwise_bias`` (which may be missing) belong to it.
    """

    kernel: int
    stride: int
    padding: int


PostOp: TypeAlias = EltwisePostOp | BinaryPostOp | SumPostOp | DepthwisePostOp
