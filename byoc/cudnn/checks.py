"""Checks for cuDNN: one small function for each composite, giving None or the reason for a refusal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tvm import relax

from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.layout.layout import parse_layout, permute_layout, plain_layout
from tvm_mxplan.core.program.dims import is_static, same_axes
from tvm_mxplan.operators.convolution_gradients import misfit
from tvm_mxplan.passes.relax_types import (
    dtype_of,
    is_constant,
    permutation_of,
    scalar_of,
    shape_of,
    slice_begin,
    static_shape_of,
)

from .families import pool_gradients
from .layout_rules import TYPES, conversion_calls

Match = Mapping[str, relax.Expr]
_MOST_AXES = 5
"""Of tensors whose layout may change."""
_CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW")


def tensors_ok(match: Match) -> str | None:
    """Element types and shapes that every composite asks of its operands and its result."""
    root = match["root"]
    for expr in (*root.args, *match.values()):
        if not isinstance(expr.ty, relax.TensorType):
            continue
        shape, dtype = shape_of(expr), dtype_of(expr)
        if dtype not in TYPES:
            return f"element type {dtype or 'unknown'}, cuDNN is given {', '.join(TYPES)}"
        if dtype != dtype_of(root):
            return f"element types {dtype} and {dtype_of(root)} in one operator"
        if shape is None or not is_static(shape):
            return "a shape that is not known at compile time"
        if 0 in shape:
            return "an empty tensor"
    if not shape_of(root):
        return "a scalar"
    if root.args and all(is_constant(arg) for arg in root.args):
        return "constants only"
    return None


def convolution(match: Match) -> str | None:
    """Of a convolution, or a transposed one."""
    call = match["product"]
    axes = "DHW"[5 - len(shape_of(call)) :]  # type: ignore[arg-type]
    transposed = "transpose" in call.op.name
    expected = (f"NC{axes}", f"{'IO' if transposed else 'OI'}{axes}")
    layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout))
    if layouts != expected or str(call.attrs.out_layout) not in ("", expected[0]):
        return f"data and kernel layouts {layouts}, expected {expected}"
    if not is_constant(call.args[1]) and "numbers" not in match and "scale" in match:
        return "filters that vary, and constants that scale their result"
    return _added(match)


def backward_weights(match: Match) -> str | None:
    return misfit(match["root"])


def average_backward(match: Match) -> str | None:
    return pool_gradients.why_not(match["root"])


def dense(match: Match) -> str | None:
    call = match["product"]
    source, weights = (shape_of(arg) for arg in call.args)
    if len(weights) != 2 or not (is_constant(call.args[1]) or "transpose" in match):  # type: ignore[arg-type]
        return "a product whose second factor is no constant matrix"
    if len(source) < 2:  # type: ignore[arg-type]
        return "a product with a vector"
    return _added(match)


def dense_of_integers(match: Match) -> str | None:
    """Of a product with a constant matrix of integers."""
    source, weights = (shape_of(arg) for arg in match["product"].args)
    if len(weights) != 2 or len(source) < 2:  # type: ignore[arg-type]
        return "a product that is none with a matrix"
    return _added(match)


def conversion(match: Match) -> str | None:
    rank = len(shape_of(match["root"]))  # type: ignore[arg-type]
    return None if rank <= _MOST_AXES else f"rank {rank}, at most {_MOST_AXES} is taken"


def _added(match: Match) -> str | None:
    """Checks what is added and multiplied: constants for each channel."""
    shape = shape_of(match["product"])
    return _for_channels(match, 1 if "conv" in match["product"].op.name else len(shape) - 1)  # type: ignore[arg-type]


def chain(match: Match) -> str | None:
    """Of constants for each channel of an image, one behind the other."""
    rank = len(shape_of(match["root"]))  # type: ignore[arg-type]
    if is_constant(match["product"]):
        return "constants only"
    return _for_channels(match, 1) if 3 <= rank <= 5 else f"rank {rank}, expected an image"


def _for_channels(match: Match, axis: int) -> str | None:
    shape = shape_of(match["product"])
    for name in ("mean", "scale", "bias", "outer_scale", "outer_bias"):
        if name in match and not per_channel(shape_of(match[name]), shape, axis):  # type: ignore[arg-type]
            return f"a constant of shape {list(shape_of(match[name]))}, expected one for each channel"  # type: ignore[arg-type]
    return None


def per_channel(shape: tuple[int, ...], result: tuple[int, ...], axis: int) -> bool:
    """Whether ``shape`` is broadcast to ``result`` along all axes but ``axis``."""
    aligned = (1,) * (len(result) - len(shape)) + tuple(shape)
    expected = tuple(extent if at == axis else 1 for at, extent in enumerate(result))
    return len(shape) <= len(result) and aligned == expected


def matmul(match: Match) -> str | None:
    ranks = [len(shape_of(arg)) for arg in match["root"].args]  # type: ignore[arg-type]
    return None if min(ranks) >= 2 else f"ranks {ranks}, expected matrices"


def pooling(match: Match) -> str | None:
    call = match["root"]
    layout = str(call.attrs.layout)
    if layout not in _CHANNELS_FIRST or str(call.attrs.out_layout) not in ("", layout):
        return f"layout {layout}, expected channels first"
    kernel, padding = list(call.attrs.pool_size), list(call.attrs.padding)
    if any(int(pad) >= int(size) for pad, size in zip(padding, kernel + kernel, strict=True)):
        return f"padding {padding} is not smaller than the kernel {kernel}"
    if bool(call.attrs.ceil_mode) and "avg" in call.op.name and bool(call.attrs.count_include_pad):
        return "average pooling in ceil mode that counts padding"
    return None


def adaptive_pooling(match: Match) -> str | None:
    call = match["root"]
    layout = str(call.attrs.layout)
    if layout not in _CHANNELS_FIRST or str(call.attrs.out_layout) not in ("", layout):
        return f"layout {layout}, expected channels first"
    source, shape = static_shape_of(call.args[0]), static_shape_of(call)
    uneven = any(i % o for i, o in zip(source[2:], shape[2:], strict=True))
    return "adaptive pooling whose windows differ in size" if uneven else None


def _axes(call: relax.Call) -> tuple[list[int], int]:
    """The axes that a reduction is over, and the rank of its source."""
    rank = len(shape_of(call.args[0]))  # type: ignore[arg-type]
    axes = call.attrs.axis
    return (list(range(rank)) if axes is None else sorted(int(axis) % rank for axis in axes)), rank


def global_pooling(match: Match) -> str | None:
    """Of all pixels of an image, its channels in front of them or behind."""
    axes, rank = _axes(match["root"])
    whole = 3 <= rank <= 5 and axes in (list(range(2, rank)), list(range(1, rank - 1)))
    return None if whole else f"axes {axes} are not those of an image's pixels"


def reduction(match: Match) -> str | None:
    call = match["root"]
    axes, rank = _axes(call)
    if axes != list(range(rank - len(axes), rank)):
        return f"axes {axes} are not the last ones"
    return None if dtype_of(call) == "float32" else f"a reduction in {dtype_of(call)}: its sums are float32"


def layer_norm(match: Match) -> str | None:
    call = match["root"]
    rank = len(shape_of(call.args[0]))  # type: ignore[arg-type]
    axes = [int(axis) % rank for axis in call.attrs.axes]
    last = list(range(rank - len(axes), rank))
    return None if axes == last else f"axes {axes} are not the last ones in their order"


def channel_norm(match: Match) -> str | None:
    """Of group and instance normalization."""
    call = match["root"]
    source = shape_of(call.args[0])
    rank = len(source)  # type: ignore[arg-type]
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    if int(call.attrs.channel_axis) % rank != 1 or not same_axes(source, axes, range(2, rank)):  # type: ignore[arg-type]
        return f"channel axis {call.attrs.channel_axis} and axes {axes}, expected 1 and all after it"
    return None


POWERS = (2.0, 3.0, 4.0)
"""Exponents of few factors."""


def power(match: Match) -> str | None:
    exponent = scalar_of(match["root"].args[1])
    if exponent is None or shape_of(match["root"].args[0]) != shape_of(match["root"]):
        return "an exponent that is no number"
    if exponent in POWERS or (math.isfinite(exponent) and not float(exponent).is_integer()):
        return None
    return f"a power of {exponent:g}: what cuDNN's gives for numbers below 0, it does not say"


def clip(match: Match) -> str | None:
    low, high = (float(bound.value) for bound in match["root"].args[1:])
    return None if low <= high else f"bounds {low} and {high}, expected in ascending order"


def binary(match: Match) -> str | None:
    call = match["root"]
    left, right, out = (shape_of(expr) for expr in (*call.args, call))
    if out not in (left, right):
        return f"both operands, {left} and {right}, are broadcast"
    if left != out and call.op.name in ("relax.subtract", "relax.divide") and scalar_of(call.args[0]) is None:
        return f"the first operand, {left}, is broadcast"
    return None


_ALIGNED = 16
"""Bytes at whose multiples engines take tensors to begin."""


def concat(match: Match) -> str | None:
    """Of pieces that engines may be asked to write, or read, where they stand in the whole."""
    call = match["root"]
    if not isinstance(call.args[0], relax.Tuple) or call.attrs.axis is None:
        return "a tuple that is not written out, or no axis"
    shape = shape_of(call)
    axis = int(call.attrs.axis) % len(shape)  # type: ignore[arg-type]
    step = item_bytes(dtype_of(call)) * math.prod(shape[axis + 1 :])  # type: ignore[index,arg-type]
    begin = 0
    for field in call.args[0].fields:
        known = tensors_ok({"root": call, "piece": field})
        if known:
            return known
        if begin * step % _ALIGNED:
            return f"a piece that begins at byte {begin * step}, which is no multiple of {_ALIGNED}"
        begin += shape_of(field)[axis]  # type: ignore[index,operator]
    return None


def strided_slice(match: Match) -> str | None:
    """Of boxes that engines may be asked to read where they stand in the whole, in whatever layout."""
    call = match["root"]
    begin = slice_begin(call)
    if begin is None:
        return "strides, or bounds that are no constant numbers"
    # One piece in a layout has all axes that are whole inside of those that are cut.
    pairs = list(zip(static_shape_of(call.args[0]), static_shape_of(call), strict=True))
    step = item_bytes(dtype_of(call)) * math.prod(whole for whole, part in pairs if whole == part)
    unaligned = next((first * step for first in begin if first * step % _ALIGNED), None)
    return None if unaligned is None else f"it begins at byte {unaligned}, which is no multiple of {_ALIGNED}"


def view(match: Match) -> str | None:
    """Of what only moves data: a constant is folded elsewhere."""
    return "a constant" if is_constant(match["root"].args[0]) else None


_MOST_CALLS = 16
"""Calls for one conversion of layouts; TVM's kernel is one for any order."""


def permute(match: Match) -> str | None:
    """Of another order of axes, whose conversion may take several calls of cuDNN's."""
    shape, order = static_shape_of(match["root"]), permutation_of(match["root"])
    source = parse_layout(permute_layout(plain_layout(len(shape)), order)).strides(shape)
    calls = conversion_calls(shape, source, parse_layout(plain_layout(len(shape))).strides(shape))
    if calls > _MOST_CALLS:
        return f"an order of axes whose conversion takes {calls} calls, at most {_MOST_CALLS} are made"
    return view(match)
