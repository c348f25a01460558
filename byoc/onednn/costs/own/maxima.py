"""Our own kernel for the largest of windows of 8-bit integers as a share of the time in float32.

``byoc/runtime/onednn/maxima`` compares either every window's vectors where they stand, or first the rows that
a row of the result sees and then the columns of what comes out.  In float32 oneDNN takes windows one by one;
the share in bfloat16 is one of ``types``.  Times are counted in vectors of 64 integers, of which a quarter as
many hold the same channels:

    at once     0.30 of the time in float32 where channels fill vectors, which come from the second cache
    in turns    0.20 for each that is compared: rows side by side whatever the channels are, and so columns
                where no pixel is skipped; else every pixel takes whole vectors

Read off a processor of the Zen 4 kind, one thread, the least processor time of many runs of windows of 2x2 to
13x13 with 3 to 1,000 channels: measured times are 0.7 to 1.1 of these, 1.7 to 2 with 3 and 17 channels.
"""

from __future__ import annotations

import math

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from ..vectors import VECTOR, whole

MAXIMA = "maxima"
"""The family of these kernels."""
_AT_ONCE, _IN_TURNS = 0.30, 0.20
_BYTES = 64
_STORED = 2
"""Loads that take as long as storing a vector does."""


def maxima_share(facts: StepFacts) -> float:
    """Time of a step in this kernel as a share of its time with everything in float32."""
    attrs, channels = facts.step.attrs, facts.shape("dst")[1]
    assert isinstance(attrs, ir.Pooling)
    rows, columns = math.prod(attrs.kernel[:-1]), attrs.kernel[-1]
    there = rows * columns * whole(channels, VECTOR)
    if channels >= _BYTES and _is_at_once(attrs, facts.shape("dst")[-1], rows):
        return _AT_ONCE * rows * columns * whole(channels, _BYTES) / there
    stride = attrs.strides[-1]
    side_by_side = channels if stride == 1 else whole(channels, _BYTES)
    return _IN_TURNS * (stride * rows * channels + columns * side_by_side) / there


def _is_at_once(attrs: ir.Pooling, width: int, rows: int) -> bool:
    """Whether comparing every window by itself takes fewer loads and stores, as the kernel decides."""
    columns = attrs.kernel[-1]
    reached = (width - 1) * attrs.strides[-1] + (columns - 1) * attrs.dilation[-1] + 1
    at_once = width * (rows * columns + _STORED)
    return at_once <= reached * (rows + _STORED) + width * (columns + _STORED)
