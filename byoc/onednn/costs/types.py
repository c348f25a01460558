"""Times of steps in bfloat16, as shares of their times in float32.

Read off oneDNN 3.2 on a processor with AVX-512 BF16, one thread, the least time of many runs of each step
alone, in shapes of ResNet-50, MobileNetV2 and BERT-base.  Products multiply twice as many numbers at once, or
as many as a machine's rates say; what loads, or computes in float32 after all, gains what it moves less, and
some lose by converting.

    products         0.50        groups of few channels, first layers  0.63       depthwise  1.02
    pooling, max     0.95        average  1.30        max by our kernel  0.65     LRN  1.03
    layer norm       1.15        softmax  1.00         batch norm  0.55           reductions  1.05
    mean square      1.50        rotary places  1.00, not measured                squeeze-excite  0.80
    recurrent layers 0.55 of one sample, 0.75 of several, whose states are multiplied in float32
    depthwise by our own kernel: see ``own.depthwise``
    two tensors      0.65        functions of one  0.90                           resampling  1.40
    moved bytes      0.75        attention  0.60: of its products half, of its softmax all; not measured
    attention by tiles 0.30 of several queries: 0.23 of 512 keys, 0.42 of 64
    products by vectors where there are tiles, whose processors take 1.7 times as long for an instruction on
    pairs: 1.6; 2.0 of few channels, and 1.3 in groups
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.kernel import alone
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import StepFacts

from . import integers
from .own.depthwise import depthwise_share, in_float_of_depthwise, is_own_depthwise
from .own.maxima import MAXIMA
from .own.tiles import is_own_tiles, theirs_of_tiles
from .own.windows import is_own_window, theirs_of_windows, window_share
from .tiles import TILES

FLOAT, SHORT = "float32", "bfloat16"
_FEW_CHANNELS = 16
_PRODUCT, _FEW, _DEPTHWISE = 0.50, 0.63, 1.02
_VECTORS, _VECTORS_OF_FEW, _VECTORS_IN_GROUPS = 1.6, 2.0, 1.3
_MAX_POOLING, _OWN_MAX_POOLING, _AVERAGE_POOLING = 0.95, 0.65, 1.30
_RECURRENT, _RECURRENT_OF_SEVERAL = 0.55, 0.75
_MOVED = 0.75
_ATTENTION_BY_TILES = 0.30
_KINDS: dict[type, float] = {
    ir.LRN: 1.03,
    ir.LayerNormalization: 1.15,
    ir.RmsNormalization: 1.50,
    ir.Rotary: 1.00,
    ir.SqueezeExcite: 0.80,
    ir.Softmax: 1.00,
    ir.BatchNormalization: 0.55,
    ir.Reduction: 1.05,
    ir.Binary: 0.65,
    ir.PReLU: 0.65,
    ir.Eltwise: 0.90,
    ir.Attention: 0.60,
    ir.Resampling: 1.40,
}


def is_float(facts: StepFacts) -> bool:
    """Whether all that a step touches is float32."""
    return all(facts.program.values[number].dtype == FLOAT for _, number in operands_of(facts.step))


def in_float(facts: StepFacts) -> StepFacts:
    """The same step with everything in float32."""
    single, _ = alone(facts.program, facts.step)
    values = tuple(replace(value, dtype=FLOAT) for value in single.values)
    info = facts.info
    if integers.reads_integers(facts):
        info = integers.float_info(facts)
    elif is_own_window(info):
        info = theirs_of_windows(info)
    elif is_own_depthwise(info):
        info = in_float_of_depthwise(info)
    elif is_own_tiles(info):
        info = theirs_of_tiles(info)
    return replace(facts, program=replace(single, values=values), step=single.steps[0], info=info)


def time_share(facts: StepFacts, machine: MachineRates) -> float:
    """Time of a step in its types as a share of its time with everything in float32."""
    attrs = facts.step.attrs
    if integers.reads_integers(facts):
        return integers.integer_share(facts)
    if isinstance(attrs, ir.MatMul | ir.InnerProduct):
        return _product(facts, machine)
    if isinstance(attrs, ir.Convolution | ir.Deconvolution):
        inputs = facts.shape("src")[1] // attrs.groups
        if inputs == 1 and attrs.groups > 1:
            return depthwise_share(facts) if is_own_depthwise(facts.info) else _DEPTHWISE
        if is_own_window(facts.info):
            return _FEW * window_share(facts)
        return _FEW if inputs < _FEW_CHANNELS else _product(facts, machine)
    if isinstance(attrs, ir.Pooling):
        largest = _OWN_MAX_POOLING if facts.info.family == MAXIMA else _MAX_POOLING
        return largest if attrs.algorithm == "max" else _AVERAGE_POOLING
    if isinstance(attrs, ir.Recurrent):
        return _RECURRENT if facts.shape("src")[1] == 1 else _RECURRENT_OF_SEVERAL
    if isinstance(attrs, ir.Attention) and TILES in facts.info.implementation and facts.shape("src")[2] > 1:
        return _ATTENTION_BY_TILES
    return _KINDS.get(type(attrs), _MOVED)


def vectors_share(facts: StepFacts) -> float:
    """Time that products by vectors compute beside tiles, of that in float32: pairs take longer there."""
    attrs = facts.step.attrs
    if not isinstance(attrs, ir.Convolution | ir.Deconvolution):
        return _VECTORS
    if attrs.groups > 1:
        return _VECTORS_IN_GROUPS
    if is_own_window(facts.info):
        return _VECTORS_OF_FEW * window_share(facts)
    return _VECTORS_OF_FEW if facts.shape("src")[1] < _FEW_CHANNELS else _VECTORS


def _product(facts: StepFacts, machine: MachineRates) -> float:
    """By the machine's rates for both types, where it states them."""
    short = facts.dtype("src")
    if not {FLOAT, short} <= {one.dtype for one in machine.compute}:
        return _PRODUCT
    return machine.gflops(FLOAT) / machine.gflops(short)
