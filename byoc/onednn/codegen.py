"""Translates each composite: one small function for each name in ``patterns.COMPOSITES``.

Elementwise composites are in ``codegen_elementwise``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import relax

from tvm_mxplan.byoc import movement
from tvm_mxplan.byoc.composite import Composite, ints, product
from tvm_mxplan.byoc.own_operators import gate
from tvm_mxplan.byoc.rewrites.quantized import composites as quantized
from tvm_mxplan.core.long_sums import fits, stages, terms_at_once
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Dim, is_static
from tvm_mxplan.operators.convolution_gradients import Window
from tvm_mxplan.passes.relax_types import scalar_of, shape_of

from .checks import last_but_for_ones
from .families import attention, experts, few_bits, recurrent, rows, training
from .families.codegen_elementwise import ELEMENTWISE
from .families.large_windows import Windows, window_stages

# --- convolutions and matrix products -------------------------------------------------------------------


def _convolution(c: Composite) -> int:
    call = c.root
    groups = int(call.attrs.groups)
    weights = quantized.weights_of(c, call.args[1])
    shape = c.builder.values[weights].shape
    if groups > 1:
        weights = c.builder.reshape(weights, (groups, shape[0] // groups, *shape[1:]))  # type: ignore[operator]
    attrs = ir.Convolution(
        ints(call.attrs.strides), ints(call.attrs.padding), ints(call.attrs.dilation), groups
    )
    return c.emit("convolution", attrs, ("src", c.value(call.args[0])), ("weights", weights))


def _deconvolution(c: Composite) -> int:
    call = c.root
    groups = int(call.attrs.groups)
    weights = quantized.weights_of(c, call.args[1])
    shape = c.builder.values[weights].shape
    spatial = range(len(shape))[2:]
    if groups > 1:
        weights = c.builder.reshape(weights, (groups, shape[0] // groups, *shape[1:]))  # type: ignore[operator]
        weights = c.builder.permute(weights, (0, 2, 1, *[axis + 1 for axis in spatial]))
    else:
        weights = c.builder.permute(weights, (1, 0, *spatial))
    attrs = ir.Deconvolution(
        ints(call.attrs.strides), ints(call.attrs.padding), ints(call.attrs.dilation), groups
    )
    return c.emit("deconvolution", attrs, ("src", c.value(call.args[0])), ("weights", weights))


def _convolution_backward_data(c: Composite) -> int:
    """A deconvolution by the same weights, inputs and outputs exchanged."""
    window = Window.of(c.root)
    weights = c.value(c.root.args[1])
    shape = c.builder.values[weights].shape
    groups, axes = window.groups, range(len(window.strides))
    if groups > 1:
        weights = c.builder.reshape(weights, (groups, shape[0] // groups, *shape[1:]))  # type: ignore[operator]
        weights = c.builder.permute(weights, (0, 2, 1, *[axis + 3 for axis in axes]))
    else:
        weights = c.builder.permute(weights, (1, 0, *[axis + 2 for axis in axes]))
    attrs = ir.Deconvolution(window.strides, window.padding, window.dilation, groups)
    return c.emit("convolution_backward_data", attrs, ("src", c.value(c.root.args[0])), ("weights", weights))


def _convolution_backward_weights(c: Composite) -> int:
    window = Window.of(c.root)
    groups, shape = window.groups, c.shape
    apart = shape if groups == 1 else (groups, shape[0] // groups, *shape[1:])  # type: ignore[operator]
    attrs = ir.ConvolutionBackwardWeights(window.strides, window.padding, window.dilation, groups)
    src, gradient = (c.value(arg) for arg in c.root.args)
    operands = [("src", src), ("gradient", gradient)]
    return c.builder.reshape(c.builder.step("convolution_backward_weights", attrs, apart, operands), shape)


def _matmul(c: Composite) -> int:
    src, weights = c.value(c.root.args[0]), quantized.weights_of(c, c.root.args[1])
    rank = len(c.shape)
    operands = ("src", c.builder.align(src, rank)), ("weights", c.builder.align(weights, rank))
    return c.emit("matmul", ir.MatMul(), *operands)


def _matmul_transposed(c: Composite) -> int:
    src, transpose = c.value(c.root.args[0]), c.definition(c.root.args[1])
    rank = len(c.shape)
    weights = c.builder.align(quantized.weights_of(c, transpose.args[0]), rank)
    weights = c.builder.permute(weights, (*range(rank - 2), rank - 1, rank - 2))
    return c.emit("matmul", ir.MatMul(), ("src", src), ("weights", weights))


# --- pooling, normalization, softmax ---------------------------------------------------------------------


def _pooling(c: Composite) -> int:
    call = c.root
    src, spatial = c.value(call.args[0]), len(c.shape) - 2
    kernel, strides = ints(call.attrs.pool_size), ints(call.attrs.strides)
    padding = ints(call.attrs.padding)[:spatial]
    if "max" in call.op.name:
        attrs = ir.Pooling("max", kernel, strides, padding, ints(call.attrs.dilation))
        return c.emit("pooling", attrs, ("src", src))
    algorithm = "avg_include_padding" if bool(call.attrs.count_include_pad) else "avg_exclude_padding"
    return _averages(c, "pooling", src, Windows(kernel, strides, padding, c.shape[2:]), algorithm)  # type: ignore[arg-type]


def _averages(
    c: Composite, stem: str, src: int, windows: Windows, algorithm: str = "avg_exclude_padding"
) -> int:
    """Averages over windows, in stages where they are large."""
    shape = c.builder.values[src].shape
    parts = window_stages(windows, shape[2:]) if is_static(shape[2:]) else [windows]  # type: ignore[arg-type]
    for stage in parts:
        attrs = ir.Pooling(algorithm, stage.kernel, stage.strides, stage.padding, (1,) * len(stage.kernel))
        src = c.builder.step(stem, attrs, (*shape[:2], *stage.extents), [("src", src)])
    return src


def _adaptive_pooling(c: Composite) -> int:
    src = c.value(c.root.args[0])
    shape = c.builder.values[src].shape
    kernel = tuple(i // o for i, o in zip(shape[2:], c.shape[2:], strict=True))  # type: ignore[operator]
    return _averages(c, "pooling", src, Windows(kernel, kernel, (0,) * len(kernel), c.shape[2:]))  # type: ignore[arg-type]


# Partial sums that a reduction makes at once: the narrowest vectors that oneDNN generates code for.
_LANES = 4
_REDUCTIONS = {"mean": "mean", "sum": "sum", "max": "max", "min": "min", "prod": "mul"}


def _reduction(c: Composite) -> int:
    call = c.root
    src = c.value(call.args[0])
    shape = c.builder.values[src].shape
    axes = {int(axis) % len(shape) for axis in call.attrs.axis}
    algorithm = call.op.name.removeprefix("relax.")
    spatial = shape[2:]
    if (
        algorithm in ("mean", "max", "sum")
        and 3 <= len(shape) <= 5
        and is_static(spatial)
        and axes == set(range(2, len(shape)))
        and (len(shape) > 3 or _is_image(c, src))
        and (algorithm == "max" or all(fits(extent, terms_at_once()) for extent in spatial))  # type: ignore[arg-type]
    ):
        dst = _pooled(c, src, algorithm)
    elif all(shape[axis] == 1 for axis in axes):
        dst = src
    elif last_but_for_ones(shape, axes):
        kept = [extent for axis, extent in enumerate(shape) if axis not in axes]
        seen = c.builder.reshape(src, (*kept, *(shape[axis] for axis in sorted(axes))))
        dst = _last_axes(c, seen, len(kept), algorithm)
    elif max(axes) < len(shape) - 1:
        dst = _pooled_axes(c, src, sorted(axes), algorithm)
    else:
        dst = _last_axes(c, src, min(axes), algorithm)
    return c.builder.reshape(dst, c.shape)


_WINDOWED = (ir.Convolution, ir.Deconvolution, ir.Pooling, ir.Resampling)


def _is_image(c: Composite, value: int) -> bool:
    """Whether rows are those of a step with windows, whose result may have its channels last."""
    writers = {result: step for step in c.builder.steps for result in step.results}
    while True:
        while c.builder.values[value].alias_of >= 0:
            value = c.builder.values[value].alias_of
        step = writers.get(value)
        if step is None or not isinstance(step.attrs, (*_WINDOWED, ir.Eltwise, ir.Binary, ir.PReLU)):
            return False
        if isinstance(step.attrs, _WINDOWED):
            return True
        value = step.operand("src")


def _global_pooling(c: Composite, src: int, algorithm: str) -> int:
    shape = c.builder.values[src].shape
    spatial: tuple[int, ...] = shape[2:]  # type: ignore[assignment]
    zeros, ones = (0,) * len(spatial), (1,) * len(spatial)
    if algorithm == "mean":
        return _averages(c, "global_pooling", src, Windows(spatial, spatial, zeros, ones))
    attrs = ir.Pooling("max", spatial, spatial, zeros, ones)
    return c.builder.step("global_pooling", attrs, (*shape[:2], *ones), [("src", src)])


def _pooled_axes(c: Composite, src: int, axes: list[int], algorithm: str) -> int:
    """The reduction over axes in the middle: a pool over the pixels of an image with its channels last."""
    shape = c.builder.values[src].shape
    reduced = shape[axes[0] : axes[-1] + 1]
    seen = (product(shape[: axes[0]]), *reduced, product(shape[axes[-1] + 1 :]))
    last = len(seen) - 1
    image = c.builder.permute(c.builder.reshape(src, seen), (0, last, *range(1, last)))
    return _pooled(c, image, algorithm)


def _pooled(c: Composite, image: int, algorithm: str) -> int:
    """The maximum, mean or sum of every channel."""
    pooled = _global_pooling(c, image, "max" if algorithm == "max" else "mean")
    if algorithm == "sum":
        reduced = product(c.builder.values[image].shape[2:])
        attrs = ir.Eltwise("linear", float(reduced), 0.0)  # type: ignore[arg-type]
        pooled = c.builder.step("eltwise", attrs, c.builder.values[pooled].shape, [("src", pooled)])
    return pooled


def _last_axes(c: Composite, src: int, first: int, algorithm: str) -> int:
    """The reduction over the axes from ``first`` on, in stages where it is a long sum."""
    shape = c.builder.values[src].shape
    terms, rows = product(shape[first:]), product(shape[:first])
    if algorithm in ("sum", "mean") and isinstance(terms, int) and terms > terms_at_once(_LANES):
        return _in_stages(c, c.builder.reshape(src, (rows, terms)), terms, algorithm)
    kept = (*shape[:first], *(1,) * len(shape[first:]))
    if 1 in shape[first:]:
        # Reduced extents of 1 between others would make it reference code.
        src, kept = c.builder.reshape(src, (rows, terms)), (rows, 1)
    return c.builder.step("reduction", ir.Reduction(_REDUCTIONS[algorithm]), kept, [("src", src)])


def _in_stages(c: Composite, src: int, terms: int, algorithm: str) -> int:
    """The sum or the mean over the last axis of [rows, terms], a long one."""
    parts = stages(terms, terms_at_once(_LANES))
    rows, filled = c.builder.values[src].shape[0], math.prod(parts)
    inexact = filled != terms
    if inexact:
        src = c.builder.step("pad", ir.Pad((0, 0), 0.0), (rows, filled), [("src", src)])
    for part in parts:
        filled //= part
        src = c.builder.reshape(src, (rows, filled, part))
        attrs = ir.Reduction("sum" if inexact else _REDUCTIONS[algorithm])
        src = c.builder.step("reduction", attrs, (rows, filled, 1), [("src", src)])
    if algorithm == "mean" and inexact:
        shape = c.builder.values[src].shape
        src = c.builder.step("eltwise", ir.Eltwise("linear", 1 / terms, 0.0), shape, [("src", src)])
    return src


def _lrn(c: Composite) -> int:
    window = c.find("nn.avg_pool3d")
    size = int(window.attrs.pool_size[0])
    # The importer multiplies x * x first; the factor that is a constant is alpha.
    scales = [
        scalar_of(arg)
        for expr in c.definitions.values()
        if isinstance(expr, relax.Call) and expr.op.name == "relax.multiply"
        for arg in expr.args
        if scalar_of(arg) is not None
    ]
    attrs = ir.LRN(size, scales[0], c.find_scalar("power"), c.find_scalar("add"))  # type: ignore[arg-type]
    return c.emit("lrn", attrs, ("src", c.only_param()))


def _softmax(c: Composite) -> int:
    call = c.root
    algorithm = "log_softmax" if "log" in call.op.name else "softmax"
    src, rank = c.value(call.args[0]), len(c.shape)
    axis = int(call.attrs.axis) % rank
    if axis == rank - 1 or (axis == 1 and rank <= 5 and algorithm == "softmax"):
        return c.emit("softmax", ir.Softmax(algorithm, axis), ("src", src))
    # oneDNN has but reference code for other axes than the last one and an image's channels, and our own
    # kernel of logarithms takes the last one.
    to_last = [dim for dim in range(rank) if dim != axis] + [axis]
    moved = c.builder.plain_copy(c.builder.permute(src, to_last))
    shape = c.builder.values[moved].shape
    dst = c.builder.step("softmax", ir.Softmax(algorithm, rank - 1), shape, [("src", moved)])
    return c.builder.permute(dst, [to_last.index(dim) for dim in range(rank)])


def _layer_norm(c: Composite) -> int:
    call = c.root
    src, gamma, beta = (c.value(arg) for arg in call.args)
    flat = rows.in_rows(c.shape, len(call.attrs.axes))
    last = flat[-1]
    operands = [("src", c.builder.reshape(src, flat))]
    if bool(call.attrs.scale):
        operands.append(("scale", c.builder.reshape(gamma, (last,))))
    if bool(call.attrs.center):
        operands.append(("shift", c.builder.reshape(beta, (last,))))
    attrs = ir.LayerNormalization(float(call.attrs.epsilon))
    return c.builder.reshape(c.builder.step("layer_norm", attrs, flat, operands), c.shape)


def _normalized_groups(c: Composite, src: int, groups: Dim, epsilon: float) -> int:
    """src [N, C, ...] with the statistics of each of ``groups`` groups of channels removed."""
    batch, channels, *spatial = c.shape
    together = 1 if channels == groups else channels // groups  # type: ignore[operator]
    flat = (product((batch, groups)), product((together, *spatial)))
    view = c.builder.reshape(src, flat)
    dst = c.builder.step("layer_norm", ir.LayerNormalization(epsilon), flat, [("src", view)])
    return c.builder.reshape(dst, c.shape)


def _channel_norm(c: Composite) -> int:
    call = c.root
    channels = c.shape[1]
    groups = int(call.attrs.num_groups) if "group" in call.op.name else channels
    src, gamma, beta = (c.value(arg) for arg in call.args)
    result = _normalized_groups(c, src, groups, float(call.attrs.epsilon))
    per_channel = (1, channels, *(1,) * (len(c.shape) - 2))
    for wanted, operand, algorithm in ((call.attrs.scale, gamma, "mul"), (call.attrs.center, beta, "add")):
        if bool(wanted):
            view = c.builder.reshape(operand, per_channel)
            result = c.emit("binary", ir.Binary(algorithm), ("src", result), ("src1", view))
    return result


def _instance_norm(c: Composite) -> int:
    return _normalized_groups(c, c.only_param(), c.shape[1], c.find_scalar("add"))


def _layer_norm_parts(c: Composite) -> int:
    flat = rows.in_rows(c.shape, len(c.find("mean").attrs.axis))
    attrs = ir.LayerNormalization(c.find_scalar("add"))
    src = c.builder.reshape(c.only_param(), flat)
    return c.builder.reshape(c.builder.step("layer_norm", attrs, flat, [("src", src)]), c.shape)


# --- data movement ---------------------------------------------------------------------------------------


def _channel_shuffle(c: Composite) -> int:
    groups = int(shape_of(c.definition(c.definition(c.root.args[0]).args[0]))[1])  # type: ignore[index,arg-type]
    return c.emit("shuffle", ir.Shuffle(1, groups), ("src", c.only_param()))


def _resize(c: Composite) -> int:
    method = "linear" if str(c.root.attrs.method) == "linear" else "nearest"
    return c.emit("resampling", ir.Resampling(method), ("src", c.value(c.root.args[0])))


def _pad(c: Composite) -> int:
    attrs = c.root.attrs
    begin = ints(attrs.pad_width)[::2]
    return c.emit("pad", ir.Pad(begin, float(attrs.pad_value)), ("src", c.value(c.root.args[0])))


TRANSLATE: dict[str, Callable[[Composite], int | tuple[int, ...]]] = {
    "quantize": quantized.translate,
    "dequantize": quantized.translate,
    "dynamic_quantize": quantized.translate_dynamic,
    "dynamic_dequantize": quantized.translate_real,
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "convolution_backward_data": _convolution_backward_data,
    "convolution_backward_weights": _convolution_backward_weights,
    "matmul": _matmul,
    "matmul_transposed": _matmul_transposed,
    "pooling": _pooling,
    "pooling_backward": training.pooling_backward,
    "batch_norm": training.batch_norm,
    "batch_norm_backward": training.batch_norm_backward,
    "layer_norm_backward": training.layer_norm_backward,
    "recurrent_training": training.recurrent,
    "recurrent_backward": training.recurrent_backward,
    "gate": gate,
    "adaptive_pooling": _adaptive_pooling,
    "reduction": _reduction,
    "recurrent": recurrent.translate,
    "attention": attention.translate,
    "cached_attention": attention.translate_cached,
    "rotary": rows.rotary,
    "rms_norm": rows.rms_norm,
    "few_bits_product": few_bits.translate,
    "grouped_product": experts.translate,
    "lrn": _lrn,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "layer_norm_parts": _layer_norm_parts,
    "channel_norm": _channel_norm,
    "instance_norm": _instance_norm,
    **ELEMENTWISE,
    "concat": movement.concat,
    "slice": movement.unit_slice,
    "reshape": movement.reshape,
    "permute": movement.permute,
    "channel_shuffle": _channel_shuffle,
    "resize": _resize,
    "pad": _pad,
}
