"""Translates each composite: one small function for each name in ``patterns.COMPOSITES``, in one ``table``.

Products with constants are in ``products``, those of two tensors in ``families/matmuls``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_mxplan.byoc import movement
from tvm_mxplan.byoc.composite import Composite, ints
from tvm_mxplan.byoc.elementwise import ACTIVATION_STEPS, BINARY, ELTWISE, with_scalar
from tvm_mxplan.byoc.own_operators import gate
from tvm_mxplan.byoc.rewrites.quantized import composites as quantized
from tvm_mxplan.byoc.spelled_out import norms
from tvm_mxplan.byoc.translate import Table
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.passes.relax_types import (
    dtype_of,
    is_constant,
    scalar_of,
    shape_of,
)

from .checks import POWERS
from .families.batch_norms import batch_norm, batch_norm_backward
from .families.matmuls import Products
from .families.pool_gradients import average_backward
from .products import backward_data, backward_weights, convolution, deconvolution, dense


def _dtype(c: Composite) -> str:
    return dtype_of(c.result)


# --- pools, reductions, norms -------------------------------------------------------------------------------


def _pooling(c: Composite) -> int:
    call = c.root
    algorithm = "max"
    if "avg" in call.op.name:
        algorithm = "avg_include_padding" if bool(call.attrs.count_include_pad) else "avg_exclude_padding"
    attrs = ir.Pooling(
        algorithm,
        ints(call.attrs.pool_size),
        ints(call.attrs.strides),
        ints(call.attrs.padding)[: len(c.shape) - 2],
        ints(call.attrs.dilation),
    )
    return c.emit("pooling", attrs, ("src", c.value(call.args[0])))


def _adaptive_pooling(c: Composite) -> int:
    return _windows(c, c.value(c.root.args[0]), static_shape(c.shape), "avg_exclude_padding")


def _global_pooling(c: Composite) -> int:
    """A pool of one window; what has its channels last is seen as an image that is stored so."""
    src = c.value(c.root.args[0])
    rank = len(c.builder.values[src].shape)
    if not bool({-1, rank - 1} & {int(axis) for axis in c.root.attrs.axis}):
        src = c.builder.permute(src, (0, rank - 1, *range(1, rank - 1)))
    ones = (*static_shape(c.builder.values[src].shape)[:2], *(1,) * (rank - 2))
    algorithm = "max" if c.root.op.name == "relax.max" else "avg_exclude_padding"
    return c.builder.reshape(_windows(c, src, ones, algorithm), c.shape)


def _windows(c: Composite, src: int, result: tuple[int, ...], algorithm: str) -> int:
    """A pool of windows that lie side by side and cover the image."""
    source = static_shape(c.builder.values[src].shape)
    kernel = tuple(i // o for i, o in zip(source[2:], result[2:], strict=True))
    attrs = ir.Pooling(algorithm, kernel, kernel, (0,) * len(kernel), (1,) * len(kernel))
    return c.builder.step("pooling", attrs, result, [("src", src)], _dtype(c))


def _reduction(c: Composite) -> int:
    """A sum, and a mean as a part of one."""
    src = c.value(c.root.args[0])
    shape = static_shape(c.builder.values[src].shape)
    axes = range(len(shape)) if c.root.attrs.axis is None else (int(axis) for axis in c.root.attrs.axis)
    first = len(shape) - len(list(axes))
    algorithm = c.root.op.name.removeprefix("relax.")
    kept = (*shape[:first], *(1,) * len(shape[first:]))
    attrs = ir.Reduction("sum" if algorithm == "mean" else algorithm)
    dst = c.builder.step("reduction", attrs, kept, [("src", src)], _dtype(c))
    if algorithm == "mean":
        part = ir.Eltwise("linear", 1 / math.prod(shape[first:]), 0.0)
        dst = c.builder.step("eltwise", part, kept, [("src", dst)], _dtype(c))
    return c.builder.reshape(dst, c.shape)


def _softmax(c: Composite) -> int:
    algorithm = "log_softmax" if "log" in c.root.op.name else "softmax"
    axis = int(c.root.attrs.axis) % len(c.shape)
    return c.emit("softmax", ir.Softmax(algorithm, axis), ("src", c.value(c.root.args[0])))


def _layer_norm(c: Composite) -> int:
    call = c.root
    src, gamma, beta = call.args
    shape = static_shape(c.shape)
    columns = math.prod(shape[len(shape) - len(call.attrs.axes) :])
    scale = c.builder.reshape(c.value(gamma), (columns,)) if bool(call.attrs.scale) else None
    shift = c.builder.reshape(c.value(beta), (columns,)) if bool(call.attrs.center) else None
    return _rows(c, c.value(src), columns, float(call.attrs.epsilon), scale, shift)


def _rows(
    c: Composite, src: int, columns: int, epsilon: float, scale: int | None = None, shift: int | None = None
) -> int:
    """Rows of ``columns`` numbers, normalized; cuDNN wants a scale and a shift for each."""
    shape = static_shape(c.shape)
    flat = (math.prod(shape) // columns, columns)
    operands = [
        ("src", c.builder.reshape(src, flat)),
        ("scale", _vector(c, columns, 1.0) if scale is None else scale),
        ("shift", _vector(c, columns, 0.0) if shift is None else shift),
    ]
    dst = c.builder.step("layer_norm", ir.LayerNormalization(epsilon), flat, operands, _dtype(c))
    return c.builder.reshape(dst, shape)


def _norm_chain(c: Composite) -> int:
    columns = math.prod(static_shape(c.shape)[axis] for axis in norms.axes_of(c.find("mean")) or ())
    return _rows(c, c.only_param(), columns, c.find_scalar("add"))


def _vector(c: Composite, length: int, number: float) -> int:
    return c.builder.constant(np.full(length, number, numpy_type(_dtype(c))))


def _channel_norm(c: Composite) -> int:
    """Statistics of each group of channels, which stand one behind the other, then scales and shifts."""
    call = c.root
    shape = static_shape(c.shape)
    groups = int(call.attrs.num_groups) if "group" in call.op.name else shape[1]
    src, gamma, beta = call.args
    columns = math.prod(shape[1:]) // groups
    result = _rows(c, c.value(src), columns, float(call.attrs.epsilon))
    channels = (1, shape[1], *(1,) * (len(shape) - 2))
    for wanted, operand, algorithm in ((call.attrs.scale, gamma, "mul"), (call.attrs.center, beta, "add")):
        if bool(wanted):
            view = c.builder.reshape(c.value(operand), channels)
            result = c.emit("binary", ir.Binary(algorithm), ("src", result), ("src1", view))
    return result


# --- elementwise -------------------------------------------------------------------------------------------


def _function(c: Composite, src: relax.Expr, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> int:
    return c.emit("eltwise", ir.Eltwise(algorithm, alpha, beta), ("src", c.value(src)))


def _eltwise(c: Composite) -> int:
    operator = c.root.op.name.removeprefix("relax.")
    return _function(c, c.root.args[0], *ELTWISE.get(operator, (operator, 0.0, 0.0)))


def _power(c: Composite) -> int:
    """A power of few factors as products, whose sign is right; others have a function."""
    exponent = scalar_of(c.root.args[1])
    if exponent not in POWERS:
        return _function(c, c.root.args[0], "pow", 1.0, float(exponent))  # type: ignore[arg-type]
    square = _function(c, c.root.args[0], "square")
    if exponent == 3.0:
        return c.emit("binary", ir.Binary("mul"), ("src", square), ("src1", c.value(c.root.args[0])))
    if exponent == 4.0:
        return c.emit("eltwise", ir.Eltwise("square", 0.0, 0.0), ("src", square))
    return square


def _leaky_relu(c: Composite) -> int:
    return _function(c, c.root.args[0], "relu", float(c.root.attrs.alpha))


def _clip(c: Composite) -> int:
    x, low, high = c.root.args
    return _function(c, x, "clip_v2", float(low.value), float(high.value))


def _activation(c: Composite, algorithm: str, alpha: float, beta: float) -> int:
    attrs = ir.Eltwise(algorithm, alpha, beta)
    return c.emit("eltwise", attrs, ("src", c.only_param()))


def _known(step: tuple[str, float, float]) -> Callable[[Composite], int]:
    return lambda c: _activation(c, *step)


def _line(algorithm: str) -> Callable[[Composite], int]:
    return lambda c: _activation(c, algorithm, c.find_scalar("multiply"), c.find_scalar("add"))


def _elu(c: Composite) -> int:
    return _activation(c, "elu", -c.find_scalar("multiply"), 0.0)


def _binary(c: Composite) -> int:
    algorithm = BINARY[c.root.op.name.removeprefix("relax.")]
    left, right = c.root.args
    for number, tensor, swapped in ((scalar_of(right), left, False), (scalar_of(left), right, True)):
        step = None if number is None else with_scalar(algorithm, number, swapped)
        if step is not None and shape_of(tensor) == c.shape:
            return _function(c, tensor, *step)
    if shape_of(left) != c.shape:  # the check has seen that they may be exchanged
        left, right = right, left
    src, src1 = (c.builder.align(c.value(arg), len(c.shape)) for arg in (left, right))
    return c.emit("binary", ir.Binary(algorithm), ("src", src), ("src1", src1))


def _chain(c: Composite) -> int:
    """One step: the innermost operator, and the others behind it, all in float32."""
    inner: relax.Expr = c.root
    found: list[tuple[str, int]] = []
    while isinstance(inner, relax.Call):
        left, right = inner.args
        constant, inner_arg = (right, left) if is_constant(c.definition(right)) else (left, right)
        number = c.builder.align(c.value(constant), len(c.shape))
        found.append((BINARY[inner.op.name.removeprefix("relax.")], number))
        inner = c.definition(inner_arg)
    (first, number), *rest = reversed(found)
    post_ops = tuple(ir.BinaryPostOp(algorithm, other) for algorithm, other in rest)
    operands = [("src", c.value(inner)), ("src1", number)]
    return c.builder.step("binary", ir.Binary(first), c.shape, operands, _dtype(c), post_ops)


_TRANSLATE: Table = {
    "conversion": quantized.translate,
    "convolution": convolution,
    "deconvolution": deconvolution,
    "dense": dense,
    "backward_data": backward_data,
    "backward_weights": backward_weights,
    "batch_norm": batch_norm,
    "batch_norm_backward": batch_norm_backward,
    "gate": gate,
    "average_pool_backward": average_backward,
    "pooling": _pooling,
    "adaptive_pooling": _adaptive_pooling,
    "global_pooling": _global_pooling,
    "reduction": _reduction,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "channel_norm": _channel_norm,
    "norm_chain": _norm_chain,
    **{name: _known(step) for name, step in ACTIVATION_STEPS.items()},
    "hardswish_line": _line("hardswish"),
    "hardsigmoid": _line("hardsigmoid"),
    "elu": _elu,
    "eltwise": _eltwise,
    "power": _power,
    "leaky_relu": _leaky_relu,
    "clip": _clip,
    "chain": _chain,
    "binary": _binary,
    "slice": movement.unit_slice,
    "concat": movement.concat,
    "reshape": movement.reshape,
    "permute": movement.permute,
}


def table(exact: bool) -> Table:
    """The functions by composite; ``exact`` where float32 is not to be rounded to TF32."""
    products = Products(exact)
    return {**_TRANSLATE, "matmul": products.matmul, "attention": products.attention}
