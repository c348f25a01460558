"""What each composite becomes: one small function for each name in ``patterns.COMPOSITES``.

Elementwise composites are in ``codegen_elementwise``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import or_

from tvm import relax

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.dims import is_static
from tvm_mxplan.passes.relax_types import scalar_of, shape_of, slice_begin

from .codegen_elementwise import ELEMENTWISE
from .composite import Composite, ints, product

# --- convolutions and matrix products -------------------------------------------------------------------


def _convolution(c: Composite) -> int:
    call = c.root
    groups = int(call.attrs.groups)
    weights = c.value(call.args[1])
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
    weights = c.value(call.args[1])
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


def _matmul(c: Composite) -> int:
    src, weights = (c.value(arg) for arg in c.root.args)
    rank = len(c.shape)
    operands = ("src", c.builder.align(src, rank)), ("weights", c.builder.align(weights, rank))
    return c.emit("matmul", ir.MatMul(), *operands)


def _matmul_transposed(c: Composite) -> int:
    src, transpose = c.value(c.root.args[0]), c.definition(c.root.args[1])
    rank = len(c.shape)
    weights = c.builder.align(c.value(transpose.args[0]), rank)
    weights = c.builder.permute(weights, (*range(rank - 2), rank - 1, rank - 2))
    return c.emit("matmul", ir.MatMul(), ("src", src), ("weights", weights))


# --- pooling, normalization, softmax ---------------------------------------------------------------------


def _pooling(c: Composite) -> int:
    call = c.root
    spatial = len(c.shape) - 2
    if "max" in call.op.name:
        algorithm = "max"
    else:
        algorithm = "avg_include_padding" if bool(call.attrs.count_include_pad) else "avg_exclude_padding"
    attrs = ir.Pooling(
        algorithm,
        ints(call.attrs.pool_size),
        ints(call.attrs.strides),
        ints(call.attrs.padding)[:spatial],
        ints(call.attrs.dilation),
    )
    return c.emit("pooling", attrs, ("src", c.value(call.args[0])))


def _adaptive_pooling(c: Composite) -> int:
    src = c.value(c.root.args[0])
    shape = c.builder.values[src].shape
    kernel = tuple(i // o for i, o in zip(shape[2:], c.shape[2:], strict=True))  # type: ignore[operator]
    zeros, ones = (0,) * len(kernel), (1,) * len(kernel)
    return c.emit("pooling", ir.Pooling("avg_exclude_padding", kernel, kernel, zeros, ones), ("src", src))


_REDUCTIONS = {"mean": "mean", "sum": "sum", "max": "max", "min": "min", "prod": "mul"}


def _reduction(c: Composite) -> int:
    call = c.root
    src = c.value(call.args[0])
    shape = c.builder.values[src].shape
    axes = {int(axis) % len(shape) for axis in call.attrs.axis}
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    algorithm = call.op.name.removeprefix("relax.")
    spatial = shape[2:]
    if (
        algorithm in ("mean", "max")
        and 3 <= len(shape) <= 5
        and is_static(spatial)
        and axes == set(range(2, len(shape)))
    ):
        pooling = "max" if algorithm == "max" else "avg_exclude_padding"
        zeros, ones = (0,) * len(spatial), (1,) * len(spatial)
        attrs: ir.Attributes = ir.Pooling(pooling, spatial, spatial, zeros, ones)  # type: ignore[arg-type]
        dst = c.builder.step("global_pooling", attrs, kept, [("src", src)])
    elif all(shape[axis] == 1 for axis in axes):
        dst = src
    else:
        if any(shape[axis] == 1 for axis in axes):
            # Reduced extents of 1 between others would make it reference code.
            first = min(axes)
            src = c.builder.reshape(src, (product(shape[:first]), product(shape[first:])))
            kept = (product(shape[:first]), 1)
        attrs = ir.Reduction(_REDUCTIONS[algorithm])
        dst = c.builder.step("reduction", attrs, kept, [("src", src)])
    return c.builder.reshape(dst, c.shape)


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
    if axis == rank - 1 or (axis == 1 and rank <= 5):
        return c.emit("softmax", ir.Softmax(algorithm, axis), ("src", src))
    # oneDNN has but reference code for other axes than the last one and an image's channels.
    to_last = [dim for dim in range(rank) if dim != axis] + [axis]
    moved = c.builder.plain_copy(c.builder.permute(src, to_last))
    shape = c.builder.values[moved].shape
    dst = c.builder.step("softmax", ir.Softmax(algorithm, rank - 1), shape, [("src", moved)])
    return c.builder.permute(dst, [to_last.index(dim) for dim in range(rank)])


def _layer_norm(c: Composite) -> int:
    call = c.root
    src, gamma, beta = (c.value(arg) for arg in call.args)
    count = len(call.attrs.axes)
    leading, last = c.shape[:-count], product(c.shape[-count:])
    flat = (*leading, last) if leading else (1, last)
    operands = [("src", c.builder.reshape(src, flat))]
    if bool(call.attrs.scale):
        operands.append(("scale", c.builder.reshape(gamma, (last,))))
    if bool(call.attrs.center):
        operands.append(("shift", c.builder.reshape(beta, (last,))))
    attrs = ir.LayerNormalization(float(call.attrs.epsilon))
    return c.builder.reshape(c.builder.step("layer_norm", attrs, flat, operands), c.shape)


def _normalized_groups(c: Composite, src: int, groups: int, epsilon: float) -> int:
    """src [N, C, ...] with the statistics of each of ``groups`` groups of channels removed."""
    batch, channels, *spatial = c.shape
    depth = channels // groups * math.prod(spatial)  # type: ignore[operator,arg-type]
    flat = (product((batch, groups)), depth)
    view = c.builder.reshape(src, flat)
    dst = c.builder.step("layer_norm", ir.LayerNormalization(epsilon), flat, [("src", view)])
    return c.builder.reshape(dst, c.shape)


def _channel_norm(c: Composite) -> int:
    call = c.root
    channels = c.shape[1]
    groups = int(call.attrs.num_groups) if "group" in call.op.name else channels
    src, gamma, beta = (c.value(arg) for arg in call.args)
    result = _normalized_groups(c, src, groups, float(call.attrs.epsilon))  # type: ignore[arg-type]
    per_channel = (1, channels, *(1,) * (len(c.shape) - 2))
    for wanted, operand, algorithm in ((call.attrs.scale, gamma, "mul"), (call.attrs.center, beta, "add")):
        if bool(wanted):
            view = c.builder.reshape(operand, per_channel)
            result = c.emit("binary", ir.Binary(algorithm), ("src", result), ("src1", view))
    return result


def _instance_norm(c: Composite) -> int:
    return _normalized_groups(c, c.only_param(), c.shape[1], c.find_scalar("add"))  # type: ignore[arg-type]


def _layer_norm_parts(c: Composite) -> int:
    count = len(c.find("mean").attrs.axis)
    leading, last = c.shape[:-count], product(c.shape[-count:])
    flat = (*leading, last) if leading else (1, last)
    attrs = ir.LayerNormalization(c.find_scalar("add"))
    src = c.builder.reshape(c.only_param(), flat)
    return c.builder.reshape(c.builder.step("layer_norm", attrs, flat, [("src", src)]), c.shape)


# --- data movement ---------------------------------------------------------------------------------------


def _concat(c: Composite) -> int:
    axis = int(c.root.attrs.axis) % len(c.shape)
    pieces: list[int] = []
    inside = 0
    for field in c.definition(c.root.args[0]).fields:
        value = c.value(field)
        # Bytes that are made inside the result can stand in one place of it.
        pieces.append(c.builder.plain_copy(value) if _owners(c, value) & inside else value)
        inside |= _owners(c, value)
    whole = c.emit("concat", ir.Concat(axis), *[("src", piece) for piece in pieces])
    c.builder.owners[whole] = reduce(or_, (_owners(c, piece) for piece in pieces))
    return whole


def _owners(c: Composite, value: int) -> int:
    """The value whose bytes ``value`` views, and, if it was concatenated, those of its pieces, as bits."""
    while c.builder.values[value].alias_of >= 0:
        value = c.builder.values[value].alias_of
    return 1 << value | c.builder.owners.get(value, 0)


def _slice(c: Composite) -> int:
    source = c.value(c.root.args[0])
    shape = c.builder.values[source].shape
    if shape == c.shape:
        return source
    return c.emit("slice", ir.Slice(slice_begin(c.root)), ("src", source))  # type: ignore[arg-type]


def _reshape(c: Composite) -> int:
    return c.builder.reshape(c.value(c.root.args[0]), c.shape)


def _permute(c: Composite) -> int:
    axes = c.root.attrs.axes
    order = range(len(c.shape))[::-1] if axes is None else [int(axis) % len(c.shape) for axis in axes]
    return c.builder.permute(c.value(c.root.args[0]), list(order))


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


TRANSLATE: dict[str, Callable[[Composite], int]] = {
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "matmul": _matmul,
    "matmul_transposed": _matmul_transposed,
    "pooling": _pooling,
    "adaptive_pooling": _adaptive_pooling,
    "reduction": _reduction,
    "lrn": _lrn,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "layer_norm_parts": _layer_norm_parts,
    "channel_norm": _channel_norm,
    "instance_norm": _instance_norm,
    **ELEMENTWISE,
    "concat": _concat,
    "slice": _slice,
    "reshape": _reshape,
    "permute": _permute,
    "channel_shuffle": _channel_shuffle,
    "resize": _resize,
    "pad": _pad,
}
