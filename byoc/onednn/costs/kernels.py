"""Efficiency of oneDNN's kernels, family by family: the fitted part of the model in ``steps``.

Read off oneDNN 3.2, every step of networks timed where it stands, and steps of training alone.  All numbers
are shares of a machine's rates, so they carry over to others; a share of compute is one of what a small 1x1
convolution reaches.

    share     of the peak at which a family computes when nothing else limits it
    shown     of the time in which threads exchange images, what is not hidden behind the arithmetic
    passes    how many times weights are read, as it were, at 33 GB/s: once, and what kernels wait beyond it
    on_avx2   of the share, what the family's code for AVX2 reaches where no vectors are wider: beside jit_1x1
              in blocks, on Zen 3; see docs/figures/avx2.md

Output channels come in whole vectors in every layout: with AVX-512, 24 take as long as 32.  With AVX2 they
take as long as 24, which pays where its peak is nearly as high, though not in groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.machine import AVX2_FLOPS, MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .groups import NARROW, STORED, loaded, narrow_groups, narrowed
from .names import ANY_WINDOW, GEMM
from .own.few_outputs import FEW_OUTPUTS, few_outputs
from .vectors import VECTOR, VECTORS, has_narrow_vectors, positions, vector_of, whole

_ROW_PRODUCT, _PACKED_PRODUCT = "row_product", "packed_product"
# Depthwise kernels of narrow vectors load more often.
_NARROW_LOADS = 0.7


@dataclass(frozen=True)
class Reach:
    """The efficiency of a family of kernels; see the module's text."""

    share: float
    shown: float
    passes: float = 1.3
    on_avx2: float = 1.0


_ONE_ROW = Reach(10.0, 0.0, 1.3)
_DEPTHWISE = (
    ("jit_dw", True, Reach(0.3, 0.8)),
    ("jit_dw", False, Reach(0.4, 0.75)),
)
_CONVOLUTIONS = (
    # Beginning of the family, whether the result is in blocks (None: either), what it reaches.
    ("brgconv_1x1", None, Reach(1.06, 0.55, 1.7, on_avx2=0.8)),
    ("jit_1x1", True, Reach(0.97, 0.4, 1.5)),
    ("jit_1x1", False, Reach(0.9, 0.9, 1.7)),
    ("brgconv", None, Reach(1.1, 1.4, 1.1, on_avx2=0.8)),
    ("brdgmm_dw", None, Reach(0.3, 0.5, on_avx2=0.65)),
    *_DEPTHWISE,
    (ANY_WINDOW, None, Reach(1.0, 1.2, on_avx2=0.75)),
    (NARROW, None, Reach(1.0, 0.5, 1.1)),
    (FEW_OUTPUTS, None, Reach(1.0, 0.5, 1.1)),
    ("conv", None, Reach(0.95, 1.2)),  # a deconvolution by the convolution's gradient
    ("brg_conv", None, Reach(0.9, 1.2)),
    (_ROW_PRODUCT, None, _ONE_ROW),
    (GEMM, None, Reach(0.3, 1.0)),
)
# The kernel for any window, of one pixel: it reads its weights less well than those made for that.
_ANY_WINDOW_OF_ONE = Reach(0.85, 1.2, 1.9, on_avx2=0.75)
_WEIGHT_GRADIENTS = (
    ("jit_1x1", True, Reach(0.9, 0.4)),
    ("jit_1x1", False, Reach(0.7, 0.9)),
    *_DEPTHWISE,  # as forward: not fitted
    ("jit", True, Reach(0.85, 1.2)),
    ("jit", False, Reach(0.8, 1.2)),
    (GEMM, None, Reach(0.3, 1.0)),
)
_WINDOWED = (ir.Convolution, ir.Deconvolution, ir.ConvolutionBackwardWeights)
_OTHER_CONVOLUTIONS = Reach(0.8, 1.0)
_PRODUCTS = Reach(1.05, 1.2, 1.3)
_GEMM = Reach(0.3, 1.4, 1.3)
# Our own for AVX2, on Zen 3: 55 to 70 of the 85 GFLOP/s of a small 1x1 convolution, weights from memory.
_PACKED = Reach(0.8, 1.2, 1.3)
_PRODUCT_FAMILIES = {
    GEMM: _GEMM,
    _PACKED_PRODUCT: _PACKED,
    _ROW_PRODUCT: _ONE_ROW,
    "grouped_product": _PACKED,
}
_MATRICES = (ir.MatMul, ir.InnerProduct, ir.GroupedProduct)
# Operations of one element of a result, or of a window: as many as the peak allows in the time that it takes.
_SCALED_LRN, _EXPONENTIAL, _NORMALIZED = 65.0, 300.0, 35.0
_TRANSCENDENTAL = 30.0
# Backward a maximum is looked for again; by the batch's statistics images are gone over more than once.
_MAXIMA_BACK, _MAXIMA_BACK_IN_BLOCKS, _AVERAGES_BACK = 24.0, 17.0, 10.0
_STATISTICS, _STATISTICS_BACK = 12.0, 14.0
# Rows are normalised again in front of their gradients.
_NORMALIZED_BACK = 2 * _NORMALIZED
# Kernels of our own on rows in caches.
_MEAN_SQUARE, _ROTATED = 12.0, 16.0
# Likewise of our own: of an element that is summed and multiplied, and of a number of the products between.
_SQUEEZED, _EXCITED = 4.0, 8.0
# Of a reorder that puts another axis side by side: elements go one by one, or by no code of their own.
_TURNED, _CONVERTED_SLOWLY = 60.0, 6500.0
# Cycles of a core, whose number does not go by the peak: of a vector of a window in a maximum and in a sum,
# each of which waits for the one before it; of an element that goes to another place alone, in oneDNN's
# kernels and in ours.
_LARGEST, _LARGEST_IN_BLOCKS, _SUMMED, _SHUFFLED, _TURNED_BY_US = 2.0, 4.5, 3.0, 0.9, 0.4
# Likewise of a vector of channels in a linear resampling, and of an element where channels stand apart.
_MIXED, _MIXED_APART = 24.0, 5.0
# Likewise of one group of one image in a convolution by matrix products, which calls a product for each.
_PRODUCT_OF_GROUP = 17_000.0
_SLOW_REORDER = "simple"
# Our own takes no longer than the bytes do.
_TURNED_BY_OURS = "turn"
# Recurrent layers over all steps and samples, with brgemm, and in cells that oneDNN calls ref.
_RECURRENT, _RECURRENT_GEMM = 0.75, 0.5
# Our kernel for few samples, whose steps read the recurrent weights as often.
_SAMPLE_RECURRENCE, _SAMPLES_TOGETHER = "sample_recurrence", 0.85
# Of attention's products, its copies of queries and its softmax counted: see docs/libraries/attention.md.
_ATTENTION = 0.75
# Products with matrices of few bits: operations for each number of the matrix, as it is multiplied by up to
# four rows or becomes a real number in cache; of the multiplications by so many rows, and by more, which
# come from beyond the nearest caches.
_FEW_BITS_READ, _FEW_BITS_UNPACKED, _FEW_ROWS = 6.0, 9.0, 4
_FEW_BITS, _FEW_BITS_OF_MANY = ((96, 0.9), (512, 0.78)), 0.64
_SIMPLE = frozenset(
    (
        "relu",
        "linear",
        "clip",
        "clip_v2",
        "abs",
        "square",
        "sqrt",
        "hardswish",
        "hardsigmoid",
        "round",
    )
)
_SHOWN = 0.9
"""Of what is moved by steps that do little else."""
_SHOWN_BY_KIND = {
    ir.Concat: 1.3,
    ir.Slice: 1.3,
    ir.Binary: 1.4,
    ir.Reorder: 1.8,
    ir.Quantization: 1.8,
    ir.DynamicQuantization: 2.4,
}


def computing_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds that a step computes, on what pads its channels too."""
    attrs, info = facts.step.attrs, facts.info
    src, dst = facts.padded("src"), facts.padded("dst")
    elements = float(math.prod(dst))
    peak = machine.gflops("float32")
    if isinstance(attrs, ir.MatMul | ir.GroupedProduct):
        operations = 2.0 * elements * src[-1] / _products(info).share
    elif isinstance(attrs, ir.InnerProduct):
        operations = 2.0 * elements * math.prod(src[1:]) / _products(info).share
    elif isinstance(attrs, ir.FewBitsProduct):
        rows, numbers = math.prod(src[:-1]), float(src[-1] * dst[-1])
        once = _FEW_BITS_READ if rows <= _FEW_ROWS else _FEW_BITS_UNPACKED
        share = next((one for most, one in _FEW_BITS if rows <= most), _FEW_BITS_OF_MANY)
        operations = numbers * (once + 2.0 * rows / share)
    elif isinstance(attrs, ir.Recurrent):
        operations = _recurrent(facts, machine)
    elif isinstance(attrs, ir.RecurrentTraining | ir.RecurrentBackward):
        products = 2.0 * math.prod(dst[:2]) * math.prod(facts.shape("recurrence")) / _RECURRENT
        operations = products + elements * _TRANSCENDENTAL
    elif isinstance(attrs, ir.Attention):
        depths = src[-1] + facts.shape("value")[-1]
        keys = facts.shape("joined_key" if facts.has("joined_key") else "key")[2]
        operations = 2.0 * math.prod(src[:3]) * keys * depths / _ATTENTION
    elif isinstance(attrs, ir.Convolution | ir.Deconvolution):
        operations = _convolution(facts, attrs, machine)
        narrow = narrowed(facts, attrs)
        if narrow in VECTORS:
            operations *= peak / machine.gflops("float32", narrow)
    elif isinstance(attrs, ir.ConvolutionBackwardWeights):
        inputs = facts.shape("dst")[2 if attrs.groups > 1 else 1 :]
        gradient = facts.padded("gradient")
        operations = 2.0 * math.prod(gradient) * math.prod(inputs) / _reach(facts).share
    elif isinstance(attrs, ir.Pooling):
        window = math.prod(min(k, n) for k, n in zip(attrs.kernel, src[2:], strict=True))
        operations = (
            positions(dst) * whole(dst[1], VECTOR) / VECTOR * window * _pooled(facts) * _cycle(machine)
        )
    elif isinstance(attrs, ir.Shuffle):
        alone = _innermost(facts, "src") == attrs.axis
        operations = elements * (_SHUFFLED if alone else 0.0) * _cycle(machine)
    elif isinstance(attrs, ir.Resampling) and attrs.algorithm == "linear":
        vectors = positions(dst) * whole(dst[1], VECTOR) / VECTOR
        together = _innermost(facts, "dst") == 1
        operations = (vectors * _MIXED if together else elements * _MIXED_APART) * _cycle(machine)
    elif isinstance(attrs, ir.PoolingBackward):
        windows = math.prod(facts.padded("gradient")) * math.prod(attrs.kernel)
        maxima = _MAXIMA_BACK_IN_BLOCKS if facts.layout("dst").blocks else _MAXIMA_BACK
        operations = windows * (maxima if attrs.algorithm == "max" else _AVERAGES_BACK)
    elif isinstance(attrs, ir.BatchNormalizationTraining):
        operations = elements * _STATISTICS
    elif isinstance(attrs, ir.BatchNormalizationBackward):
        operations = elements * _STATISTICS_BACK
    elif isinstance(attrs, ir.LRN):
        operations = elements * _SCALED_LRN
    elif isinstance(attrs, ir.Softmax):
        operations = elements * _EXPONENTIAL
    elif isinstance(attrs, ir.LayerNormalization):
        operations = elements * _NORMALIZED
    elif isinstance(attrs, ir.RmsNormalization):
        operations = elements * _MEAN_SQUARE
    elif isinstance(attrs, ir.SqueezeExcite):
        products = math.prod(facts.shape("weights")) * (2 if facts.has("gate_weights") else 1)
        operations = elements * _SQUEEZED + dst[0] * products * _EXCITED
    elif isinstance(attrs, ir.Rotary):
        operations = elements * _ROTATED
    elif isinstance(attrs, ir.LayerNormalizationBackward):
        operations = elements * _NORMALIZED_BACK
    elif isinstance(attrs, ir.Reorder):
        slow = info.family == _SLOW_REORDER and facts.layout("src") != facts.layout("dst")  # else a copy
        by_us = _TURNED_BY_US * _cycle(machine) if info.family == _TURNED_BY_OURS else _TURNED
        operations = elements * (_CONVERTED_SLOWLY if slow else by_us if _turns(facts) else 0.0)
    elif isinstance(attrs, ir.Eltwise):
        operations = 0.0 if attrs.algorithm in _SIMPLE else elements * _TRANSCENDENTAL
    else:
        operations = 0.0
    operations += functions_behind(facts) * elements * _TRANSCENDENTAL
    return operations / peak / 1e3


def is_function(post_op: ir.PostOp) -> TypeGuard[ir.EltwisePostOp]:
    """Whether a post-op takes more than the few operations of those that cut and scale."""
    return isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm not in _SIMPLE


def functions_behind(facts: StepFacts) -> int:
    """The number of such functions among a step's post-ops."""
    return sum(map(is_function, facts.step.post_ops))


def shown_share(facts: StepFacts) -> float:
    """Of the time in which threads exchange images, the share that arithmetic does not hide."""
    attrs = facts.step.attrs
    if isinstance(attrs, _WINDOWED):
        return _reach(facts).shown
    if isinstance(attrs, _MATRICES):
        return _products(facts.info).shown
    return _SHOWN_BY_KIND.get(type(attrs), _SHOWN)


def hides(facts: StepFacts) -> bool:
    """Whether a step has arithmetic that the exchange of images is hidden behind."""
    dense = isinstance(facts.step.attrs, (*_WINDOWED, *_MATRICES))
    return dense and not _is_depthwise(facts.info)


def weights_passes(facts: StepFacts) -> float:
    """Times that a step's weights and parameters are read, as it were; see the module's text."""
    attrs = facts.step.attrs
    if isinstance(attrs, ir.Convolution | ir.Deconvolution):
        return _reach(facts).passes
    return _products(facts.info).passes if isinstance(attrs, _MATRICES) else 1.0


def weights_share(facts: StepFacts) -> float:
    """Of a step's weights and parameters, the part that is read: of groups, those that have rows at most."""
    if isinstance(facts.step.attrs, ir.GroupedProduct):
        return min(1.0, facts.shape("src")[0] / facts.shape("weights")[0])
    return 1.0


def _recurrent(facts: StepFacts, machine: MachineRates) -> float:
    """Operations of a recurrent layer, as many as the peak allows in the time that it takes."""
    steps, samples = facts.shape("dst")[:2]
    inputs, recurrent = (math.prod(facts.shape(role)) for role in ("weights", "recurrence"))
    if facts.info.family != _SAMPLE_RECURRENCE:
        share = _RECURRENT_GEMM if facts.info.is_reference else _RECURRENT
        return 2.0 * steps * samples * (inputs + recurrent) / share
    directions = facts.shape("recurrence")[1]
    nbytes = recurrent * item_bytes(facts.dtype("recurrence"))
    reading_us = steps * nbytes / machine.holding(nbytes // directions).read / 1e3
    reading = reading_us * machine.gflops("float32") * 1e3
    recurring = 2.0 * steps * samples * recurrent / _SAMPLES_TOGETHER
    return 2.0 * steps * samples * inputs / _PRODUCTS.share + max(reading, recurring)


def _convolution(facts: StepFacts, attrs: ir.Convolution | ir.Deconvolution, machine: MachineRates) -> float:
    """Operations of a convolution, as many as the peak allows in the time that it takes."""
    info, src, dst = facts.info, facts.padded("src"), facts.padded("dst")
    window = math.prod(facts.shape("weights")[2 + (attrs.groups > 1) :])
    inputs, outputs = src[1], dst[1]
    if attrs.groups > 1:
        inputs = facts.shape("src")[1] // attrs.groups
    elif inputs >= VECTOR and not info.family.startswith("brgconv"):
        inputs = whole(inputs, vector_of(info))
    if info.family == NARROW:
        return narrow_groups(facts, attrs.groups, machine)
    if info.family == FEW_OUTPUTS:
        return few_outputs(facts, _cycle(machine))
    reach = _reach(facts)
    narrow = info.instruction_set == "avx2" and has_narrow_vectors(machine)
    share = reach.share * (reach.on_avx2 if narrow else 1.0)
    if facts.step.has_depthwise:
        # Pointwise at every position of the source, then a window of 3x3 for each element of the result.
        operations = 2.0 * positions(src) * inputs * whole(outputs, vector_of(info))
        return operations / share + 2.0 * 9 * math.prod(dst) / _of("brdgmm_dw", False).share
    pixels = positions(dst if isinstance(attrs, ir.Convolution) else src)
    if not _is_depthwise(info):
        # Every group's output channels take whole vectors; AVX2's narrow ones gain nothing there.
        instructions = narrowed(facts, attrs)
        wide = attrs.groups > 1 and info.instruction_set in VECTORS
        vector = VECTOR if wide else VECTORS.get(instructions, VECTOR)
        outputs = attrs.groups * whole(-(-outputs // attrs.groups), vector)
        if attrs.groups > 1:
            share = loaded(facts, instructions, machine, share)
    terms = inputs * window + (STORED if info.family == ANY_WINDOW else 0)
    called = attrs.groups * src[0] * _PRODUCT_OF_GROUP if attrs.groups > 1 and info.family == GEMM else 0.0
    return 2.0 * pixels * outputs * terms / share + called * _cycle(machine)


def _pooled(facts: StepFacts) -> float:
    """Cycles of a vector of a window."""
    attrs = facts.step.attrs
    assert isinstance(attrs, ir.Pooling)
    if attrs.algorithm != "max":
        return _SUMMED
    return _LARGEST_IN_BLOCKS if facts.layout("dst").blocks else _LARGEST


def _cycle(machine: MachineRates) -> float:
    """Operations that the peak allows in a cycle of one core, at the clock at which AVX2 is measured."""
    return AVX2_FLOPS * machine.gflops("float32") / machine.gflops("float32", "avx2")


def _innermost(facts: StepFacts, role: str) -> int | None:
    """The axis along which neighbours stand side by side."""
    shape, layout = facts.shape(role), facts.layout(role)
    axes = [*layout.order, *(dim for _, dim in layout.blocks)]
    return next((dim for dim in reversed(axes) if shape[dim] != 1), None)


def _turns(facts: StepFacts) -> bool:
    """Whether neighbours in the source of a reorder are none in its result."""
    return _innermost(facts, "src") != _innermost(facts, "dst")


def _reach(facts: StepFacts) -> Reach:
    of_weights = isinstance(facts.step.attrs, ir.ConvolutionBackwardWeights)
    image, table = ("src", _WEIGHT_GRADIENTS) if of_weights else ("dst", _CONVOLUTIONS)
    if facts.info.family == ANY_WINDOW and not of_weights and _is_pointwise(facts):
        return _ANY_WINDOW_OF_ONE
    reach = _of(facts.info.family, bool(facts.layout(image).blocks), table)
    if _is_depthwise(facts.info) and facts.info.instruction_set in VECTORS:
        return replace(reach, share=_NARROW_LOADS * reach.share)
    return reach


def _of(family: str, blocked: bool, table: Sequence[tuple[str, bool | None, Reach]] = _CONVOLUTIONS) -> Reach:
    for beginning, wanted, reach in table:
        if family.startswith(beginning) and wanted in (None, blocked):
            return reach
    return _OTHER_CONVOLUTIONS


def _products(info: StepInfo) -> Reach:
    return _PRODUCT_FAMILIES.get(info.family, _PRODUCTS)


def _is_pointwise(facts: StepFacts) -> bool:
    """Whether one group's windows have one pixel."""
    weights = facts.shape("weights")
    return len(weights) == len(facts.shape("src")) and math.prod(weights[2:]) == 1


def _is_depthwise(info: StepInfo) -> bool:
    return "dw" in info.family.split("_")
