"""What a library's kernels reach, family by family: the calibrated part of the model in ``costs``.

Read off oneDNN 3.2 on two-core AVX-512 machines, every step of the model zoo timed where it stands in its
model, batch 1 and 8, under all policies in turns.  Shares of a machine's peak carry over to others.

    brgconv      3x3 and larger at 0.93, on depth (input channels) as it is
    jit          0.88, on depth in whole vectors; reads its weights again for each row of the result
    1x1          jit 0.87, with strides 0.8; brgconv 0.92; in channels last, all of them hide only half
                 of what comes from memory and goes there
    depthwise    limited by loads: brdgmm 0.25; jit 0.3 in channels last on images of 14 and wider, less on
                 smaller ones, 0.19 in blocks; inside a pointwise one 0.25 in addition to that
    pooling      limited by loads, in blocks more than in channels last
    LRN          across channels, whose neighbours are at hand in channels last

Output channels come in whole vectors in every layout: with AVX-512, 24 take as long as 32.  With AVX2 they
take as long as 24, which pays where its peak is nearly as high (``processor.py``), though not in groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import dense_bytes
from tvm_mxplan.core.layout.layout import channels_last, parse_layout
from tvm_mxplan.core.program import program as ir

from .candidates import Layouts, operands_of

_VECTOR = 16
_VECTORS = {"avx2": 8, "sse41": 4}
# Depthwise kernels of narrow vectors load more often; SSE has half of AVX2's vectors and adds apart.
_NARROW_LOADS, _SSE = 0.7, 0.3
_DEPTHWISE, _WIDE_DEPTHWISE, _NARROW_DEPTHWISE, _BLOCKED_DEPTHWISE = 0.25, 0.3, 0.22, 0.19
_WIDE = 14
# Elements of windows, or of the result, for each operation at the peak.
_POOLING, _BLOCKED_POOLING = 0.095, 0.036
_LRN, _BLOCKED_LRN = 0.0145, 0.0095
# The speed of the cache that weights are read from again, as a multiple of the speed of memory.
_LAST_CACHE_SPEED = 2.5
# What 1x1 convolutions in channels last show of the time for images beyond so many bytes.
_EXPOSED_1X1, _NEAR_BYTES = 0.5, 4 << 20

_Shapes = Mapping[str, tuple[int, ...]]


def arithmetic_us(
    program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, gflops: float, narrow_share: float
) -> float:
    """Microseconds that a step computes, on what pads its channels too.

    Parameters
    ----------
    gflops : the machine's peak.
    narrow_share : what AVX2 reaches of it.
    """
    by_role = dict(zip((role for role, _ in operands_of(step)), layouts, strict=True))
    shapes = {
        role: parse_layout(by_role[role]).padded_shape(program.values[step.operand(role)].shape)
        for role in ("src", "dst")
    }
    blocked, elements = bool(parse_layout(by_role["dst"]).blocks), float(math.prod(shapes["dst"]))
    if isinstance(step.attrs, ir.MatMul):
        operations = 2.0 * elements * shapes["src"][-1] / _efficiency(step.attrs, info)
    elif isinstance(step.attrs, ir.InnerProduct):
        operations = 2.0 * elements * math.prod(shapes["src"][1:]) / _efficiency(step.attrs, info)
    elif isinstance(step.attrs, ir.Convolution | ir.Deconvolution):
        operations = _convolution(program, step, step.attrs, info, shapes, blocked)
        operations /= {"avx2": narrow_share, "sse41": _SSE * narrow_share}.get(_isa(info), 1.0)
    elif isinstance(step.attrs, ir.Pooling):
        window = [min(k, n) for k, n in zip(step.attrs.kernel, shapes["src"][2:], strict=True)]
        operations = elements * math.prod(window) / (_BLOCKED_POOLING if blocked else _POOLING)
    elif isinstance(step.attrs, ir.LRN):
        operations = elements / (_BLOCKED_LRN if blocked else _LRN)
    else:
        return 0.0
    return operations / gflops / 1e3


def reread_weights_us(
    program: ir.Program, step: ir.Step, info: StepInfo, cache_bytes: int, gbytes_per_s: float
) -> float:
    """Microseconds for weights that are read for every row of the result, where caches do not hold them."""
    if not isinstance(step.attrs, ir.Convolution) or not info.implementation.startswith("jit:"):
        return 0.0
    filters = program.values[step.operand("weights")]
    weights = dense_bytes(filters.shape, filters.dtype)
    if weights <= cache_bytes // 2:
        return 0.0
    images, _, *rows, _ = program.values[step.dst].shape
    speed = _LAST_CACHE_SPEED * gbytes_per_s
    return images * math.prod(rows) * weights / speed / 1e3  # type: ignore[arg-type, operator]


def exposed_us(program: ir.Program, step: ir.Step, layouts: Layouts, gbytes_per_s: float) -> float:
    """Microseconds of moving images to and from memory that are not hidden behind arithmetic."""
    if not isinstance(step.attrs, ir.Convolution) or step.has_depthwise:
        return 0.0
    by_role = dict(zip((role for role, _ in operands_of(step)), layouts, strict=True))
    window = program.values[step.operand("weights")].shape[2 + (step.attrs.groups > 1) :]
    if by_role["dst"] != channels_last(len(window) + 2) or any(extent != 1 for extent in window):
        return 0.0
    images = (program.values[step.operand(role)] for role in ("src", "dst"))
    beyond = sum(dense_bytes(image.shape, image.dtype) for image in images) - _NEAR_BYTES
    return max(0.0, _EXPOSED_1X1 * beyond / gbytes_per_s / 1e3)


def _convolution(
    program: ir.Program,
    step: ir.Step,
    attrs: ir.Convolution | ir.Deconvolution,
    info: StepInfo,
    shapes: _Shapes,
    blocked: bool,
) -> float:
    """Operations of a convolution, as many as the peak allows in the time that it takes."""
    window = math.prod(program.values[step.operand("weights")].shape[2 + (attrs.groups > 1) :])  # type: ignore[arg-type]
    inputs, outputs = shapes["src"][1], shapes["dst"][1]
    if attrs.groups > 1:
        inputs = program.values[step.operand("src")].shape[1] // attrs.groups  # type: ignore[operator]
    elif inputs >= _VECTOR and not info.implementation.startswith("brgconv"):
        inputs = _whole(inputs, _vector(info))
    if step.has_depthwise:
        # Pointwise at every position of the source, then a window of 3x3 for each element of the result.
        operations = 2.0 * _positions(shapes["src"]) * inputs * _whole(outputs, _vector(info))
        pointwise = operations / _efficiency(attrs, info)
        return pointwise + 2.0 * 9 * math.prod(shapes["dst"]) / _DEPTHWISE
    positions = _positions(shapes["dst" if isinstance(attrs, ir.Convolution) else "src"])
    if "dw" in info.implementation.split(":")[0].split("_"):
        share = _depthwise(info, blocked, shapes["dst"][-1])
    else:
        share = _efficiency(attrs, info)
        # Every group's output channels take whole vectors; narrow ones gain nothing there.
        vector = _vector(info) if attrs.groups == 1 else _VECTOR
        outputs = attrs.groups * _whole(-(-outputs // attrs.groups), vector)
    return 2.0 * positions * inputs * outputs * window / share


def _depthwise(info: StepInfo, blocked: bool, width: int) -> float:
    """What :func:`_efficiency` is for depthwise convolutions."""
    if blocked or not info.implementation.startswith("jit"):
        return _BLOCKED_DEPTHWISE if blocked else _DEPTHWISE
    loads = _NARROW_LOADS if _isa(info) in _VECTORS else 1.0
    return loads * (_WIDE_DEPTHWISE if width >= _WIDE else _NARROW_DEPTHWISE)


def _positions(shape: tuple[int, ...]) -> int:
    return shape[0] * math.prod(shape[2:])


def _isa(info: StepInfo) -> str:
    """``avx2`` of ``brgconv_1x1:avx2``."""
    return info.implementation.partition(":")[2]


def _vector(info: StepInfo) -> int:
    """Channels that an implementation computes at once."""
    return _VECTORS.get(_isa(info), _VECTOR)


def _whole(channels: int, vector: int) -> int:
    return -(-channels // vector) * vector


def _efficiency(attrs: ir.Attributes, info: StepInfo) -> float:
    """Share of the peak that an implementation reaches when memory is no limit."""
    name = info.implementation
    if any(part.startswith("gemm") for part in name.split(":")):  # also x64:gemm:jit, but not brgemm
        return 0.3
    if name.startswith("jit_1x1"):
        return 0.8 if max(getattr(attrs, "strides", (1,))) > 1 else 0.87
    if name.startswith("brgconv_1x1"):
        return 0.92
    return 0.88 if name.startswith("jit") else 0.93
