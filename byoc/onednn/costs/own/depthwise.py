"""Our own kernel for each channel by itself in bfloat16 as a share of oneDNN's time in float32.

``byoc/runtime/onednn/depthwise``: a column of an image is loaded, and widened, once for several pixels of a
result.  Times are counted in products of oneDNN's kernel in float32:

    a product           0.5
    beside products     12 for each number of a result, 11 of oneDNN's
    columns apart       1.5 of that time with dilated columns, and strides of more than 2: each is widened for
                        every pixel that reads it
    channels            by blocks of 32: a last one of up to 16 takes 0.7 of a whole one's time

Read off a processor with AMX, one thread, the least time of many runs of windows of 2x2 to 11x11 at strides
of 1 to 8, with 8 to 960 channels and memory aligned as regions have it: measured shares are 0.6 to 1.25 of
these, the least where images come from beyond the caches.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from ..vectors import VECTOR, whole

DEPTHWISE = "depthwise"
"""The family of this kernel."""
_IN_FLOAT = "brgdmm_dw"
_PRODUCT, _BESIDE, _BESIDE_THERE = 0.5, 12.0, 11.0
_APART, _REUSED = 1.5, 2
_BLOCK, _HALF_BLOCK = 2 * VECTOR, 0.7


def is_own_depthwise(info: StepInfo) -> bool:
    """Whether a step runs in this kernel."""
    return info.family == DEPTHWISE


def depthwise_share(facts: StepFacts) -> float:
    """Time of a step in this kernel as a share of its time in float32."""
    channels = facts.shape("dst")[1]
    products = math.prod(facts.shape("weights")[3:])
    blocks, left = divmod(channels, _BLOCK)
    taken = blocks + (0.0 if left == 0 else _HALF_BLOCK if left <= VECTOR else 1.0)
    filled = taken * _BLOCK / whole(channels, VECTOR)
    attrs = facts.step.attrs
    assert isinstance(attrs, ir.Convolution)
    apart = _APART if attrs.dilation[-1] > 1 or attrs.strides[-1] > _REUSED else 1.0
    return apart * filled * (_PRODUCT * products + _BESIDE) / (products + _BESIDE_THERE)


def in_float_of_depthwise(info: StepInfo) -> StepInfo:
    """oneDNN's implementation in float32, whose time the share is one of."""
    return replace(info, family=_IN_FLOAT)
