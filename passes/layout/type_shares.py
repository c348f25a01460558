"""What a step takes in a shorter type, as a share of what it takes in float32.

Read off oneDNN 3.2 on a processor with AVX-512 BF16, one thread, the least time of many runs of each step
alone, in shapes of ResNet-50, MobileNetV2 and BERT-base.  Products multiply twice as many numbers at once;
what loads, or computes in float32 after all, gains what it moves less, and some lose by converting.

    products         0.50        groups of few channels, first layers  0.63       depthwise  1.02
    pooling, max     0.95        average  1.30                                    LRN  1.03
    layer norm       1.15        softmax  1.00         batch norm  0.55           reductions  1.05
    two tensors      0.65        functions of one  0.90                           resampling  1.40
    moved bytes      0.75
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.kernel import alone
from tvm_mxplan.core.program import program as ir

from .candidates import is_cast, operands_of

FLOAT = "float32"
_FEW_CHANNELS = 16
_PRODUCT, _FEW, _DEPTHWISE = 0.50, 0.63, 1.02
_MAX_POOLING, _AVERAGE_POOLING = 0.95, 1.30
_KINDS: dict[type, float] = {
    ir.MatMul: _PRODUCT,
    ir.InnerProduct: _PRODUCT,
    ir.LRN: 1.03,
    ir.LayerNormalization: 1.15,
    ir.Softmax: 1.00,
    ir.BatchNormalization: 0.55,
    ir.Reduction: 1.05,
    ir.Binary: 0.65,
    ir.PReLU: 0.65,
    ir.Eltwise: 0.90,
    ir.Resampling: 1.40,
}
_MOVED = 0.75


def time_share(program: ir.Program, step: ir.Step) -> float:
    """Time of ``step`` in its types as a share of its time with everything in float32."""
    attrs = step.attrs
    if isinstance(attrs, ir.Convolution | ir.Deconvolution):
        inputs = program.values[step.operand("src")].shape[1]
        each = inputs // attrs.groups  # type: ignore[operator]
        if each == 1 and attrs.groups > 1:
            return _DEPTHWISE
        return _FEW if each < _FEW_CHANNELS else _PRODUCT
    if isinstance(attrs, ir.Pooling):
        return _MAX_POOLING if attrs.algorithm == "max" else _AVERAGE_POOLING
    return _KINDS.get(type(attrs), _MOVED)


def widened(program: ir.Program, step: ir.Step) -> ir.Program | None:
    """``step`` alone, all in float32; None where it is, or where it converts types."""
    types = {program.values[number].dtype for _, number in operands_of(step)}
    if types == {FLOAT} or is_cast(program, step):
        return None
    single, _ = alone(program, step)
    return replace(single, values=tuple(replace(value, dtype=FLOAT) for value in single.values))
