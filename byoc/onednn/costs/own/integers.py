"""Our own kernels for convolutions of 8-bit integers as shares of oneDNN's: ``byoc/runtime/onednn/integers``.

Dense kernels of both multiply at nearly the peak.  What differs is the time from a sum to the number that
is written, counted here in operations in 8 bits, as many as the peak allows meanwhile, for each number of the
result; and that ours ask for weights before they are needed.  Read off on a processor of the Zen 5 kind, one
thread, the least time of many runs of each layer of MobileNetV2, SqueezeNet and ResNet-50, alone and where it
stands; of windows on one of the Zen 4 kind, alone:

    finished     a number is scaled, rounded, packed and written: ours 32, oneDNN's 63
    post-op      what one more takes: ours 17 (20 there, 14 on Zen 4), oneDNN's 9 (10)
    waiting      for weights and to start, where few pixels use them, of oneDNN's: 0.15

    windows      rows that are copied and begun, of ours: 0.02

    depthwise    0.62 where vectors run through whole rows; else 0.92, and channels fill vectors of 64
"""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from ..vectors import VECTOR, positions, whole

POINTWISE, WINDOWS, DEPTHWISE = "integers_1x1", "integers_windows", "integers_dw"
"""The families of these kernels."""
_FINISHED, _POST_OP = 32.0, 17.0
_FINISHED_THERE, _POST_OP_THERE = 63.0, 9.0
_WAITING, _FEW_PIXELS = 0.15, 800
_ROWS = 0.02
_THROUGH, _APART, _BYTES = 0.62, 0.92, 64
_TOGETHER = 4
"""Products that an instruction adds up, and columns of a window."""


def is_own(facts: StepFacts) -> bool:
    """Whether a step runs in one of these kernels."""
    return facts.info.family in (POINTWISE, WINDOWS, DEPTHWISE)


def own_share(facts: StepFacts) -> float:
    """Time of a step in one of these kernels as a share of its time in oneDNN's kernels for integers."""
    post_ops = len(facts.step.post_ops)
    if facts.info.family == DEPTHWISE:
        return _depthwise(facts)
    *_, rows, columns = facts.shape("weights")
    products = 2.0 * rows * whole(columns * facts.shape("src")[1], _TOGETHER)
    windows = facts.info.family == WINDOWS
    ours = products * (1.0 + _ROWS * windows) + _FINISHED + _POST_OP * post_ops
    theirs = products + _FINISHED_THERE + _POST_OP_THERE * post_ops
    waits = not windows and positions(facts.shape("dst")) <= _FEW_PIXELS
    return ours / theirs / (1.0 + _WAITING * waits)


def _depthwise(facts: StepFacts) -> float:
    attrs = facts.step.attrs
    assert isinstance(attrs, ir.Convolution)
    channels = facts.shape("dst")[1]
    if attrs.strides[1] == 1 and facts.has("dst_scale") and not facts.step.post_ops:
        return _THROUGH
    return _APART * whole(channels, _BYTES) / whole(channels, VECTOR)
