"""Our own kernels for convolutions of 8-bit integers as shares of oneDNN's: ``byoc/runtime/onednn/integers``.

Pointwise kernels of both multiply at nearly the peak.  What differs is the time from a sum to the number that
is written, counted here in operations in 8 bits, as many as the peak allows meanwhile, for each number of the
result; and that ours ask for weights before they are needed.  Read off on a processor of the Zen 5 kind, one
thread, the least time of many runs of each layer of MobileNetV2, SqueezeNet and ResNet-50, alone and where it
stands:

    finished     a number is scaled, rounded, packed and written: ours 32, oneDNN's 63
    post-op      what one more takes: ours 20, oneDNN's 9
    waiting      for weights and to start, where few pixels use them, of oneDNN's: 0.15

    depthwise    0.62 where vectors run through whole rows; else 0.92, and channels fill vectors of 64
"""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .vectors import VECTOR, positions, whole

POINTWISE, DEPTHWISE = "integers_1x1", "integers_dw"
"""The families of these kernels."""
_FINISHED, _POST_OP = 32.0, 20.0
_FINISHED_THERE, _POST_OP_THERE = 63.0, 9.0
_WAITING, _FEW_PIXELS = 0.15, 800
_THROUGH, _APART, _BYTES = 0.62, 0.92, 64
_TOGETHER = 4
"""Products that an instruction adds up, and columns of a window."""


def is_own(facts: StepFacts) -> bool:
    """Whether a step runs in one of these kernels."""
    return facts.info.family in (POINTWISE, DEPTHWISE)


def own_share(facts: StepFacts) -> float:
    """Time of a step in one of these kernels as a share of its time in oneDNN's kernels for integers."""
    post_ops = len(facts.step.post_ops)
    if facts.info.family == DEPTHWISE:
        return _depthwise(facts)
    products = 2.0 * whole(facts.shape("src")[1], _TOGETHER)
    ours = products + _FINISHED + _POST_OP * post_ops
    theirs = products + _FINISHED_THERE + _POST_OP_THERE * post_ops
    waiting = _WAITING if positions(facts.shape("dst")) <= _FEW_PIXELS else 0.0
    return ours / theirs / (1.0 + waiting)


def _depthwise(facts: StepFacts) -> float:
    attrs = facts.step.attrs
    assert isinstance(attrs, ir.Convolution)
    channels = facts.shape("dst")[1]
    if attrs.strides[1] == 1 and facts.has("dst_scale") and not facts.step.post_ops:
        return _THROUGH
    return _APART * whole(channels, _BYTES) / whole(channels, VECTOR)
