"""Times of steps on integers of 8 bits, as shares of their times in float32.

Read off oneDNN 3.2 on a processor with AVX-512 VNNI, one thread, the least time of many runs of each step of
ResNet-50 and MobileNetV2 alone; all have channels last, since in other layouts there is reference code only.

    products                0.28       first layers, groups of few channels  0.33      depthwise  0.85
    maximum over windows    0.30       moved bytes                           0.30

Its two families of dense kernels take the same time, and so does code for AVX2 of each: twice as long as for
AVX-512, and 1.6 times in depthwise convolutions. Kernels of our own for AVX2 are taken to do so,
too; on a Zen 3 ResNet-50 takes 0.61 of its time in float32.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .own.integers import is_own, own_share
from .own.maxima import MAXIMA, maxima_share

TYPES = ("uint8", "int8")
_PRODUCT, _FEW, _DEPTHWISE, _MOVED = 0.28, 0.33, 0.85, 0.30
_FEW_CHANNELS = 16
_NARROW, _NARROW_DEPTHWISE = 2.0, 1.6
_NARROW_SETS = ("avx2", "sse41")


def reads_integers(facts: StepFacts) -> bool:
    return facts.dtype("src") in TYPES


def integer_share(facts: StepFacts) -> float:
    """Time of a step that reads integers as a share of its time with everything in float32."""
    attrs = facts.step.attrs
    narrow = facts.info.instruction_set in _NARROW_SETS
    if isinstance(attrs, ir.Convolution | ir.Deconvolution):
        if _is_depthwise(facts, attrs):
            share, slow = _DEPTHWISE, _NARROW_DEPTHWISE
        else:
            few = facts.shape("src")[1] // attrs.groups < _FEW_CHANNELS
            share, slow = _FEW if few else _PRODUCT, _NARROW
        return share * (own_share(facts) if is_own(facts) else 1.0) * (slow if narrow else 1.0)
    if isinstance(attrs, ir.MatMul | ir.InnerProduct):
        return _PRODUCT * (_NARROW if narrow else 1.0)
    return maxima_share(facts) if facts.info.family == MAXIMA else _MOVED


def float_info(facts: StepFacts) -> StepInfo:
    """The implementation for float32 whose time the share is one of."""
    attrs, info = facts.step.attrs, facts.info
    ours = is_own(facts)
    if not isinstance(attrs, ir.Convolution | ir.Deconvolution) or not ("int8" in info.family or ours):
        return info
    wide = replace(info, instruction_set="avx512" if info.instruction_set else "")
    if _is_depthwise(facts, attrs):
        return replace(wide, family="jit_dw")
    return replace(wide, family="brgconv_1x1" if info.family.endswith("1x1") else "brgconv")


def _is_depthwise(facts: StepFacts, attrs: ir.Convolution | ir.Deconvolution) -> bool:
    return attrs.groups > 1 and facts.shape("src")[1] == attrs.groups
