"""Times of steps on integers of 8 bits, as shares of their times in float32.

Read off oneDNN 3.2 on a processor with AVX-512 VNNI, in shapes of ResNet-50, MobileNetV2 and BERT-base; all
have channels last, since in other layouts there is reference code only.

    products                0.28       first layers, groups of few channels  0.33      depthwise  0.85
    maximum over windows    0.30       moved bytes                           0.30

Code for AVX2 multiplies 8 bits in two steps; it takes three times as long as for AVX-512.
"""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

TYPES = ("uint8", "int8")
_PRODUCT, _FEW, _DEPTHWISE, _MOVED = 0.28, 0.33, 0.85, 0.30
_FEW_CHANNELS = 16
_NARROW = 3.0


def integer_share(facts: StepFacts) -> float:
    """Time of a step that reads integers as a share of its time with everything in float32."""
    attrs = facts.step.attrs
    narrow = _NARROW if facts.info.instruction_set in ("avx2", "sse41") else 1.0
    if isinstance(attrs, ir.Convolution | ir.Deconvolution):
        inputs = facts.shape("src")[1] // attrs.groups
        if inputs == 1 and attrs.groups > 1:
            return _DEPTHWISE * narrow
        return (_FEW if inputs < _FEW_CHANNELS else _PRODUCT) * narrow
    return _PRODUCT * narrow if isinstance(attrs, ir.MatMul | ir.InnerProduct) else _MOVED
