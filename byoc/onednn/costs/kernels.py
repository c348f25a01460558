"""Efficiency of oneDNN's kernels, family by family: the calibrated part of the model in ``steps``.

Read off oneDNN 3.2 on two-core AVX-512 machines, every step of the model zoo timed where it stands in its
model, batch 1 and 8, under all policies in turns.  Shares of a machine's peak carry over to others.

    brgconv      3x3 and larger at 0.93, on depth (input channels) as it is
    jit          0.88, on depth in whole vectors; reads its weights again for each row of the result
    1x1          jit 0.87, with strides 0.8; brgconv 0.92; in channels last, all of them hide only half
                 of what comes from memory and goes there
    depthwise    limited by loads: brdgmm 0.25; jit 0.3 in channels last on images of 14 and wider, less on
                 smaller ones, 0.19 in blocks; inside a pointwise one 0.25 in addition to that
    pooling      limited by loads, in blocks more than in channels last
    recurrent    0.75 over all steps and samples with brgemm, 0.5 in cells that oneDNN calls ref
    LRN          across channels, whose neighbours are at hand in channels last

Output channels come in whole vectors in every layout: with AVX-512, 24 take as long as 32.  With AVX2 they
take as long as 24, which pays where its peak is nearly as high, though not in groups.
"""

from __future__ import annotations

import math

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import dense_bytes
from tvm_mxplan.core.layout.layout import channels_last
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .names import GEMM

_VECTOR = 16
_VECTORS = {"avx2": 8, "sse41": 4}
# Depthwise kernels of narrow vectors load more often; SSE has half of AVX2's vectors and adds apart.
_NARROW_LOADS, _SSE = 0.7, 0.3
_DEPTHWISE, _WIDE_DEPTHWISE, _NARROW_DEPTHWISE, _BLOCKED_DEPTHWISE = 0.25, 0.3, 0.22, 0.19
_WIDE = 14
# Elements of windows, or of the result, for each operation at the peak.
_POOLING, _BLOCKED_POOLING = 0.095, 0.036
_LRN, _BLOCKED_LRN = 0.0145, 0.0095
_RECURRENT, _RECURRENT_GEMM = 0.75, 0.5
# The speed of the cache that weights are read from again, as a multiple of the speed of memory.
_LAST_CACHE_SPEED = 2.5
# The share of the time for images beyond so many bytes that 1x1 convolutions in channels last show.
_EXPOSED_1X1, _NEAR_BYTES = 0.5, 4 << 20


def arithmetic_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds that a step computes, on what pads its channels too."""
    attrs, info = facts.step.attrs, facts.info
    src, dst = facts.padded("src"), facts.padded("dst")
    blocked, elements = bool(facts.layout("dst").blocks), float(math.prod(dst))
    gflops = machine.gflops(facts.dtype("src"))
    if isinstance(attrs, ir.MatMul):
        operations = 2.0 * elements * src[-1] / _efficiency(attrs, info)
    elif isinstance(attrs, ir.InnerProduct):
        operations = 2.0 * elements * math.prod(src[1:]) / _efficiency(attrs, info)
    elif isinstance(attrs, ir.Recurrent):
        products = sum(math.prod(facts.shape(role)) for role in ("weights", "recurrence"))
        share = _RECURRENT_GEMM if info.is_reference else _RECURRENT
        operations = 2.0 * math.prod(dst[:2]) * products / share
    elif isinstance(attrs, ir.Convolution | ir.Deconvolution):
        operations = _convolution(facts, attrs, blocked)
        narrow = machine.gflops(facts.dtype("src"), "avx2") / gflops
        operations /= {"avx2": narrow, "sse41": _SSE * narrow}.get(info.instruction_set, 1.0)
    elif isinstance(attrs, ir.Pooling):
        window = [min(k, n) for k, n in zip(attrs.kernel, src[2:], strict=True)]
        operations = elements * math.prod(window) / (_BLOCKED_POOLING if blocked else _POOLING)
    elif isinstance(attrs, ir.LRN):
        operations = elements / (_BLOCKED_LRN if blocked else _LRN)
    else:
        return 0.0
    return operations / gflops / 1e3


def reread_weights_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds for weights that are read for every row of the result, where caches do not hold them."""
    if not isinstance(facts.step.attrs, ir.Convolution) or facts.info.family != "jit":
        return 0.0
    weights = dense_bytes(facts.shape("weights"), facts.dtype("weights"))
    if weights <= (machine.levels[0].nbytes or 0) // 2:
        return 0.0
    images, _, *rows, _ = facts.shape("dst")
    speed = _LAST_CACHE_SPEED * machine.memory.copied
    return images * math.prod(rows) * weights / speed / 1e3


def exposed_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds of moving images to and from memory that are not hidden behind arithmetic."""
    attrs = facts.step.attrs
    if not isinstance(attrs, ir.Convolution) or facts.step.has_depthwise:
        return 0.0
    window = facts.shape("weights")[2 + (attrs.groups > 1) :]
    last = facts.layout("dst").tag == channels_last(len(window) + 2)
    if not last or any(extent != 1 for extent in window):
        return 0.0
    images = sum(dense_bytes(facts.shape(role), facts.dtype(role)) for role in ("src", "dst"))
    beyond = images - _NEAR_BYTES
    return max(0.0, _EXPOSED_1X1 * beyond / machine.memory.copied / 1e3)


def _convolution(facts: StepFacts, attrs: ir.Convolution | ir.Deconvolution, blocked: bool) -> float:
    """Operations of a convolution, as many as the peak allows in the time that it takes."""
    info, src, dst = facts.info, facts.padded("src"), facts.padded("dst")
    window = math.prod(facts.shape("weights")[2 + (attrs.groups > 1) :])
    inputs, outputs = src[1], dst[1]
    if attrs.groups > 1:
        inputs = facts.shape("src")[1] // attrs.groups
    elif inputs >= _VECTOR and not info.family.startswith("brgconv"):
        inputs = _whole(inputs, _vector(info))
    if facts.step.has_depthwise:
        # Pointwise at every position of the source, then a window of 3x3 for each element of the result.
        operations = 2.0 * _positions(src) * inputs * _whole(outputs, _vector(info))
        pointwise = operations / _efficiency(attrs, info)
        return pointwise + 2.0 * 9 * math.prod(dst) / _DEPTHWISE
    positions = _positions(dst if isinstance(attrs, ir.Convolution) else src)
    if "dw" in info.family.split("_"):
        share = _depthwise(info, blocked, dst[-1])
    else:
        share = _efficiency(attrs, info)
        # Every group's output channels take whole vectors; narrow ones gain nothing there.
        vector = _vector(info) if attrs.groups == 1 else _VECTOR
        outputs = attrs.groups * _whole(-(-outputs // attrs.groups), vector)
    return 2.0 * positions * inputs * outputs * window / share


def _depthwise(info: StepInfo, blocked: bool, width: int) -> float:
    """Returns the counterpart of :func:`_efficiency` for depthwise convolutions."""
    if blocked or not info.family.startswith("jit"):
        return _BLOCKED_DEPTHWISE if blocked else _DEPTHWISE
    loads = _NARROW_LOADS if info.instruction_set in _VECTORS else 1.0
    return loads * (_WIDE_DEPTHWISE if width >= _WIDE else _NARROW_DEPTHWISE)


def _positions(shape: tuple[int, ...]) -> int:
    return shape[0] * math.prod(shape[2:])


def _vector(info: StepInfo) -> int:
    """Channels that an implementation computes at once."""
    return _VECTORS.get(info.instruction_set, _VECTOR)


def _whole(channels: int, vector: int) -> int:
    return -(-channels // vector) * vector


def _efficiency(attrs: ir.Attributes, info: StepInfo) -> float:
    """Share of the peak that an implementation reaches when memory is no limit."""
    family = info.family
    if family == GEMM:
        return 0.3
    if family.startswith("jit_1x1"):
        return 0.8 if max(getattr(attrs, "strides", (1,))) > 1 else 0.87
    if family.startswith("brgconv_1x1"):
        return 0.92
    return 0.88 if family.startswith("jit") else 0.93
