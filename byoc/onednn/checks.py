"""Checks for oneDNN: one small function for each composite, giving None or the reason for a refusal.

Reasons are shown to the user in the report; they name what was met and what would have been taken.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from tvm import relax

from tvm_mxplan.byoc.spelled_out.activations import check_threshold
from tvm_mxplan.core.long_sums import fits, terms_at_once
from tvm_mxplan.core.program.dims import Shape, is_static, same_axes
from tvm_mxplan.operators.convolution_gradients import misfit
from tvm_mxplan.passes.relax_types import dtype_of, is_constant, scalar_of, shape_of, slice_begin

from .broadcasting import can_be_fast

Match = Mapping[str, relax.Expr]
MAX_RANK = 6
DTYPES = ("float32",)
_UNKNOWN_SHAPE = "a shape that is not known at compile time"


def _tensors(call: relax.Expr) -> list[relax.Expr]:
    tensors: list[relax.Expr] = []
    for arg in call.args:
        fields = arg.fields if isinstance(arg, relax.Tuple) else [arg]
        tensors.extend(field for field in fields if isinstance(field.ty, relax.TensorType))
    return tensors


def tensors_ok(match: Match, but: relax.Expr | None = None) -> str | None:
    """Element types, ranks and shapes that every composite asks of its operands and its result.

    All are asked of each but one, where that is a count.
    """
    root = match["root"]
    operands = [match["x"]] if "x" in match else _tensors(root)
    results = [root] if isinstance(root.ty, relax.TensorType) else []  # those of a tuple follow from operands
    for tensor in [*_tensors(root), *results]:
        reason = None if but is not None and tensor.same_as(but) else _tensor_ok(tensor)
        if reason is not None:
            return reason
    inner = [expr for expr in match.values() if isinstance(expr.ty, relax.TensorType)]
    if any(shape_of(expr) is None for expr in inner):
        return _UNKNOWN_SHAPE
    if all(is_constant(operand) for operand in operands):
        return "constants only"
    if any(_is_nan(expr) for expr in (*match.values(), *root.args)):
        return "a constant that is no number (NaN)"
    return None


def _is_nan(expr: relax.Expr) -> bool:
    return is_constant(expr) and dtype_of(expr) in DTYPES and math.isnan(scalar_of(expr) or 0.0)


def _tensor_ok(tensor: relax.Expr) -> str | None:
    dtype, shape = dtype_of(tensor), shape_of(tensor)
    if dtype not in DTYPES:
        return f"element type {dtype or 'unknown'}, oneDNN takes {', '.join(DTYPES)} here"
    if shape is None:
        return _UNKNOWN_SHAPE
    if len(shape) > MAX_RANK:
        return f"rank {len(shape)}, at most {MAX_RANK} is taken"
    if not shape and not is_constant(tensor):
        return "a scalar, oneDNN has no tensors of rank 0"
    return "an empty tensor" if 0 in shape else None


def convolution(match: Match) -> str | None:
    call = match["root"]
    weights = shape_of(call.args[1])
    layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout))
    transposed = "transpose" in call.op.name
    expected = {
        3: ("NCW", "IOW" if transposed else "OIW"),
        4: ("NCHW", "IOHW" if transposed else "OIHW"),
        5: ("NCDHW", "IODHW" if transposed else "OIDHW"),
    }[len(weights)]  # type: ignore[arg-type]
    if layouts != expected:
        return f"data and kernel layouts {layouts}, expected {expected}"
    if str(call.attrs.out_layout) not in ("", expected[0]):
        return f"output layout {call.attrs.out_layout}, expected {expected[0]}"
    if not is_static(weights):  # type: ignore[arg-type]
        return "weights of unknown shape"
    return None


def convolution_backward_weights(match: Match) -> str | None:
    call = match["root"]
    if not all(is_static(shape_of(arg)) for arg in call.args):  # type: ignore[arg-type]
        return "images of unknown shape"
    return misfit(call)


def matmul(match: Match) -> str | None:
    ranks = [len(shape_of(arg)) for arg in match["root"].args]  # type: ignore[arg-type]
    return None if min(ranks) >= 2 else f"ranks {ranks}, matmul takes 2 and more"


def pooling(match: Match) -> str | None:
    call = match["root"]
    layout = str(call.attrs.layout)
    if layout not in ("NCW", "NCHW", "NCDHW") or str(call.attrs.out_layout) not in ("", layout):
        return f"layout {layout}, expected channels first"
    if any(int(step) != 1 for step in call.attrs.dilation):
        return "a dilated window, for which oneDNN has reference code only"
    kernel, padding = list(call.attrs.pool_size), list(call.attrs.padding)
    if any(int(pad) >= int(size) for pad, size in zip(padding, kernel + kernel, strict=True)):
        return f"padding {padding} is not smaller than the kernel {kernel}"
    shape = shape_of(call)
    source = shape_of(call.args[0])
    if bool(call.attrs.ceil_mode):
        if not (is_static(shape) and is_static(source)):  # type: ignore[arg-type]
            return "ceil mode with symbolic shapes"
        if "avg" in call.op.name and bool(call.attrs.count_include_pad):
            return _ceil_window_overhangs(call, source, shape)  # type: ignore[arg-type]
    return None


def _ceil_window_overhangs(call: relax.Call, source: Shape, shape: Shape) -> str | None:
    """Counting padding, TVM clips a window that ends beyond the padded input; oneDNN does not."""
    spatial = len(source) - 2
    for axis in range(spatial):
        stride, size = int(call.attrs.strides[axis]), int(call.attrs.pool_size[axis])
        before, after = int(call.attrs.padding[axis]), int(call.attrs.padding[spatial + axis])
        needed = (shape[2 + axis] - 1) * stride + size  # type: ignore[operator]
        if needed > source[2 + axis] + before + after:  # type: ignore[operator]
            return "average pooling in ceil mode that counts padding, with a window past the padded input"
    return None


def adaptive_pooling(match: Match) -> str | None:
    call = match["root"]
    layout = str(call.attrs.layout)
    if layout not in ("NCW", "NCHW", "NCDHW") or str(call.attrs.out_layout) not in ("", layout):
        return f"layout {layout}, expected channels first"
    shape, source = shape_of(call), shape_of(call.args[0])
    if not (is_static(shape) and is_static(source)):  # type: ignore[arg-type]
        return "adaptive pooling with symbolic shapes"
    uneven = any(i % o for i, o in zip(source[2:], shape[2:], strict=True))  # type: ignore[index]
    return "adaptive pooling whose windows differ in size" if uneven else None


def binary(match: Match) -> str | None:
    call = match["root"]
    left, right, out = (shape_of(expr) for expr in (*call.args, call))
    if any(scalar_of(arg) is not None for arg in call.args) and out in (left, right):
        return None
    if out not in (left, right):
        return f"both operands, {left} and {right}, are broadcast; oneDNN broadcasts one of them"
    operand: Shape = right if left == out else left  # type: ignore[assignment]
    aligned = (1,) * (len(out) - len(operand)) + operand  # type: ignore[arg-type]
    if not can_be_fast(aligned, out):  # type: ignore[arg-type]
        return (
            f"{operand} is broadcast to {out} along axes that are far apart: oneDNN has reference code only"
        )
    return None


def power(match: Match) -> str | None:
    return None if scalar_of(match["root"].args[1]) is not None else "an exponent that is no constant number"


def reduction(match: Match) -> str | None:
    call = match["root"]
    rank = len(shape_of(call.args[0]))  # type: ignore[arg-type]
    if call.attrs.axis is None:
        return "a reduction over all axes"
    axes = sorted(int(axis) % rank for axis in call.attrs.axis)
    if axes == list(range(rank - len(axes), rank)) or last_but_for_ones(shape_of(call.args[0]), axes):  # type: ignore[arg-type]
        return None
    return None if pools_axes(call) else f"axes {axes} are not the last ones: oneDNN has reference code only"


def last_but_for_ones(shape: Sequence[object], axes: Collection[int]) -> bool:
    """Whether no other axis with more than one element stands behind a reduced one that has them."""
    seen = [axis in axes for axis, extent in enumerate(shape) if extent != 1]
    return is_static(shape) and seen == sorted(seen)  # type: ignore[arg-type]


def pools_axes(call: relax.Call) -> bool:
    """Whether a reduction is the pool of an image with its channels last.

    Its axes stand together, and behind them enough numbers side by side for a vector.
    """
    shape = shape_of(call.args[0])
    axes = sorted(int(axis) % len(shape) for axis in call.attrs.axis)  # type: ignore[arg-type]
    together = axes == list(range(axes[0], axes[-1] + 1)) and len(axes) <= _MOST_AXES
    if not together or axes[-1] == len(shape) - 1 or not is_static(shape) or 0 in shape:  # type: ignore[arg-type,operator]
        return False
    fit = all(fits(shape[axis], terms_at_once()) for axis in axes)  # type: ignore[index,arg-type]
    side_by_side = math.prod(shape[axes[-1] + 1 :]) >= _SIDE_BY_SIDE  # type: ignore[index,arg-type]
    return fit and side_by_side and call.op.name in _POOLED


_POOLED = ("relax.mean", "relax.sum", "relax.max")
_MOST_AXES, _SIDE_BY_SIDE = 3, 8


def softmax(match: Match) -> str | None:
    return None if is_static(shape_of(match["root"])) else _softmax_axis(match["root"])  # type: ignore[arg-type]


def _softmax_axis(call: relax.Call) -> str | None:
    rank = len(shape_of(call))  # type: ignore[arg-type]
    return None if int(call.attrs.axis) % rank == rank - 1 else "symbolic shapes and not the last axis"


def normalized_axes(match: Match) -> str | None:
    call = match["root"]
    rank = len(shape_of(call.args[0]))  # type: ignore[arg-type]
    axes = [int(axis) % rank for axis in call.attrs.axes]
    last = list(range(rank - len(axes), rank))
    return None if axes == last else f"axes {axes} are not the last ones in their order"


def channel_normalization(match: Match) -> str | None:
    call = match["root"]
    source = shape_of(call.args[0])
    rank = len(source)  # type: ignore[arg-type]
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    if int(call.attrs.channel_axis) % rank != 1 or not same_axes(source, axes, range(2, rank)):  # type: ignore[arg-type]
        return f"channel axis {call.attrs.channel_axis} and axes {axes}, expected 1 and all after it"
    return None if is_static(source[1:]) else "symbolic channels or extents"  # type: ignore[index]


def concat(match: Match) -> str | None:
    call = match["root"]
    if not isinstance(call.args[0], relax.Tuple) or call.attrs.axis is None:
        return "a tuple that is not written out, or no axis"
    return None


def strided_slice(match: Match) -> str | None:
    begin = slice_begin(match["root"])
    return "strides, or bounds that are no constant numbers" if begin is None else None


def reshape(match: Match) -> str | None:
    return None if len(shape_of(match["root"])) > 0 else "a scalar result"  # type: ignore[arg-type]


def resize(match: Match) -> str | None:
    call = match["root"]
    source, out = shape_of(call.args[0]), shape_of(call)
    if str(call.attrs.layout) not in ("NCW", "NCHW", "NCDHW"):
        return f"layout {call.attrs.layout}, expected channels first"
    mode, method = str(call.attrs.coordinate_transformation_mode), str(call.attrs.method)
    if mode == "pytorch_half_pixel" and 1 not in out[2:]:  # type: ignore[index]
        mode = "half_pixel"
    if method == "linear":
        return (
            None if mode == "half_pixel" else f"linear resize with {mode} coordinates, oneDNN has half_pixel"
        )
    if method != "nearest_neighbor":
        return f"resize method {method}, oneDNN has nearest and linear"
    if not (is_static(source) and is_static(out)):  # type: ignore[arg-type]
        return "nearest resize with symbolic shapes"
    if any(o % i for i, o in zip(source[2:], out[2:], strict=True)):  # type: ignore[index]
        return "nearest resize by a factor that is not whole: the rounding rules differ"
    rounding = str(call.attrs.rounding_method)
    # With whole factors, half-pixel coordinates never fall between two pixels.
    if (mode, rounding) == ("asymmetric", "floor") or (mode == "half_pixel" and rounding.startswith("round")):
        return None
    return f"nearest resize with {mode} coordinates and rounding {rounding}"


def pad(match: Match) -> str | None:
    call = match["root"]
    if str(call.attrs.pad_mode) != "constant":
        return f"pad mode {call.attrs.pad_mode}, only constant is taken"
    if math.isnan(float(call.attrs.pad_value)):
        return "padding that is no number (NaN)"
    return "negative padding" if min(int(width) for width in call.attrs.pad_width) < 0 else None


def prelu(match: Match) -> str | None:
    call = match["root"]
    shape, slopes = shape_of(call), shape_of(call.args[1])
    axis = int(call.attrs.axis) % len(shape)  # type: ignore[arg-type]
    if scalar_of(call.args[1]) is not None or slopes == (shape[axis],):  # type: ignore[index]
        return None
    return f"slopes {slopes}, expected a constant number or one for each of {shape[axis]}"  # type: ignore[index]


def clip(match: Match) -> str | None:
    low, high = (float(bound.value) for bound in match["root"].args[1:])
    return None if low <= high else f"bounds {low} and {high}, oneDNN takes them in ascending order"


def leaky_relu(match: Match) -> str | None:
    return "a slope that is no number (NaN)" if math.isnan(float(match["root"].attrs.alpha)) else None


def softplus(match: Match) -> str | None:
    beta = float(match["root"].attrs.beta)
    if not beta > 0:
        return f"beta {beta}, expected more than 0"
    return check_threshold(match["root"])
