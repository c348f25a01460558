"""Checks for cuDNN: one small function for each composite, giving None or the reason for a refusal."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.passes.relax_types import dtype_of, is_constant, shape_of

from .layout_rules import TYPES

Match = Mapping[str, relax.Expr]


def tensors_ok(match: Match) -> str | None:
    """Element types and shapes that every composite asks of its operands and its result."""
    for name, expr in match.items():
        if not isinstance(expr.ty, relax.TensorType):
            continue
        shape, dtype = shape_of(expr), dtype_of(expr)
        if dtype not in TYPES:
            return f"element type {dtype or 'unknown'}, cuDNN is given {', '.join(TYPES)}"
        if dtype != dtype_of(match["root"]):
            return f"element types {dtype} and {dtype_of(match['root'])} in one operator"
        if shape is None or not is_static(shape):
            return f"{name} has a shape that is not known at compile time"
        if 0 in shape:
            return "an empty tensor"
    return None


def convolution(match: Match) -> str | None:
    call = match["product"]
    layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout), str(call.attrs.out_layout))
    if layouts[:2] != ("NCHW", "OIHW") or layouts[2] not in ("", "NCHW"):
        return f"data and kernel layouts {layouts[:2]}, expected ('NCHW', 'OIHW')"
    if not is_constant(call.args[1]):
        return "filters that are not constant"
    padding = [int(number) for number in call.attrs.padding]
    if padding[: len(padding) // 2] != padding[len(padding) // 2 :]:
        return f"padding {padding} that differs at begin and end"
    return _added(match)


def matmul(match: Match) -> str | None:
    call = match["product"]
    source, weights = (shape_of(arg) for arg in call.args)
    if len(weights) != 2 or not _is_stored(match, call.args[1]):  # type: ignore[arg-type]
        return "a product whose second factor is no constant matrix: TVM's kernels have it"
    if len(source) < 2:  # type: ignore[arg-type]
        return "a product with a vector"
    return _added(match)


def _is_stored(match: Match, weights: relax.Expr) -> bool:
    """Whether the second factor is a constant, or one transposed: the pattern has matched which."""
    return is_constant(weights) or "transpose" in match


def _added(match: Match) -> str | None:
    """Checks what is added: constants for each channel, and an image of the result's shape."""
    shape = shape_of(match["product"])
    axis = 1 if "conv" in str(match["product"].op.name) else len(shape) - 1  # type: ignore[arg-type]
    for name in ("mean", "scale", "bias"):
        if name in match and not per_channel(shape_of(match[name]), shape, axis):  # type: ignore[arg-type]
            return f"a constant of shape {list(shape_of(match[name]))}, expected one for each channel"  # type: ignore[arg-type]
    if "residual" in match:
        if shape_of(match["residual"]) != shape:
            return "what is added is broadcast"
        if is_constant(match["residual"]):
            return "what is added is constant"
    return None


def per_channel(shape: tuple[int, ...], result: tuple[int, ...], axis: int) -> bool:
    """Whether ``shape`` is broadcast to ``result`` along all axes but ``axis``."""
    aligned = (1,) * (len(result) - len(shape)) + tuple(shape)
    expected = tuple(extent if at == axis else 1 for at, extent in enumerate(result))
    return len(shape) <= len(result) and aligned == expected
