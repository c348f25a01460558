"""What each composite becomes: one small function for each name in ``patterns.COMPOSITES``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax
from tvm_mxplan.passes.relax_types import constant_of, is_constant, scalar_of, shape_of

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.builder import ProgramBuilder
from tvm_mxplan.core.dims import Dim, Expr, Shape, is_static


@dataclass(frozen=True)
class Composite:
    """One call of a composite, and the builder to translate it into."""

    builder: ProgramBuilder
    params: Mapping[tvm.ir.Var, int]
    definitions: Mapping[tvm.ir.Var, relax.Expr]
    result: relax.Expr

    def definition(self, expr: relax.Expr) -> relax.Expr:
        while isinstance(expr, tvm.ir.Var) and expr in self.definitions:
            expr = self.definitions[expr]
        return expr

    @property
    def root(self) -> relax.Call:
        return self.definition(self.result)

    @property
    def shape(self) -> Shape:
        return shape_of(self.result)  # type: ignore[return-value]

    def value(self, expr: relax.Expr) -> int:
        """Value id of a parameter or a constant of the composite."""
        expr = self.definition(expr)
        if is_constant(expr):
            return self.builder.constant(constant_of(expr))  # type: ignore[arg-type]
        return self.params[expr]

    def only_param(self) -> int:
        """The one tensor that a composite of several operators works on."""
        (value,) = set(self.params.values())
        return value

    def find(self, operator: str) -> relax.Call:
        """The composite's call to ``operator``."""
        for expr in self.definitions.values():
            if isinstance(expr, relax.Call) and expr.op.name == f"relax.{operator}":
                return expr
        raise KeyError(operator)

    def find_scalar(self, operator: str) -> float:
        """The constant number among the operands of the composite's call to ``operator``."""
        scalars = [scalar_of(arg) for arg in self.find(operator).args]
        return next(scalar for scalar in scalars if scalar is not None)

    def emit(self, stem: str, attrs: ir.Attributes, *operands: tuple[str, int]) -> int:
        return self.builder.step(stem, attrs, self.shape, operands)


def _ints(array: object) -> tuple[int, ...]:
    return tuple(int(number) for number in array)  # type: ignore[attr-defined]


def _product(dims: Shape) -> Dim:
    result: Dim = 1
    for dim in dims:
        if isinstance(result, int) and isinstance(dim, int):
            result = result * dim
        elif result == 1:
            result = dim
        else:
            result = Expr("*", result, dim)
    return result


# --- convolutions and matrix products -------------------------------------------------------------------


def _convolution(c: Composite) -> int:
    call = c.root
    groups = int(call.attrs.groups)
    weights = c.value(call.args[1])
    shape = c.builder.values[weights].shape
    if groups > 1:
        weights = c.builder.reshape(weights, (groups, shape[0] // groups, *shape[1:]))  # type: ignore[operator]
    attrs = ir.Convolution(
        _ints(call.attrs.strides), _ints(call.attrs.padding), _ints(call.attrs.dilation), groups
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
        _ints(call.attrs.strides), _ints(call.attrs.padding), _ints(call.attrs.dilation), groups
    )
    return c.emit("deconvolution", attrs, ("src", c.value(call.args[0])), ("weights", weights))


def _matmul(c: Composite) -> int:
    src, weights = (c.value(arg) for arg in c.root.args)
    rank = len(c.shape)
    operands = ("src", c.builder.align(src, rank)), ("weights", c.builder.align(weights, rank))
    return c.emit("matmul", ir.MatMul(), *operands)


def _matmul_transposed(c: Composite) -> int:
    src, transpose = c.value(c.root.args[0]), c.definition(c.root.args[1])
    weights = c.builder.permute(c.value(transpose.args[0]), (1, 0))
    rank = len(c.shape)
    if rank > 2:
        leading = c.builder.values[src].shape[:-1]
        depth, width = c.builder.values[weights].shape
        src = c.builder.reshape(src, (_product(leading), depth))
        dst = c.builder.step(
            "matmul", ir.MatMul(), (_product(leading), width), [("src", src), ("weights", weights)]
        )
        return c.builder.reshape(dst, c.shape)
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
        _ints(call.attrs.pool_size),
        _ints(call.attrs.strides),
        _ints(call.attrs.padding)[:spatial],
        _ints(call.attrs.dilation),
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
    axis = int(call.attrs.axis) % len(c.shape)
    return c.emit("softmax", ir.Softmax(algorithm, axis), ("src", c.value(call.args[0])))


def _layer_norm(c: Composite) -> int:
    call = c.root
    src, gamma, beta = (c.value(arg) for arg in call.args)
    count = len(call.attrs.axes)
    leading, last = c.shape[:-count], _product(c.shape[-count:])
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
    flat = (_product((batch, groups)), depth)
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


# --- elementwise -------------------------------------------------------------------------------------------

_ELTWISE: dict[str, tuple[str, float, float]] = {
    "nn.relu": ("relu", 0.0, 0.0),
    "nn.gelu": ("gelu_erf", 0.0, 0.0),
    "nn.gelu_tanh": ("gelu_tanh", 0.0, 0.0),
    "nn.silu": ("swish", 1.0, 0.0),
    "tanh": ("tanh", 0.0, 0.0),
    "sigmoid": ("logistic", 0.0, 0.0),
    "exp": ("exp", 0.0, 0.0),
    "log": ("log", 0.0, 0.0),
    "abs": ("abs", 0.0, 0.0),
    "sqrt": ("sqrt", 0.0, 0.0),
    "square": ("square", 0.0, 0.0),
    "negative": ("linear", -1.0, 0.0),
}


def _unary(c: Composite, src: int, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> int:
    return c.emit("eltwise", ir.Eltwise(algorithm, alpha, beta), ("src", src))


def _eltwise(c: Composite) -> int:
    call = c.root
    src = c.value(call.args[0])
    if call.op.name == "relax.nn.leakyrelu":
        return _unary(c, src, "relu", float(call.attrs.alpha))
    return _unary(c, src, *_ELTWISE[call.op.name.removeprefix("relax.")])


def _clip(c: Composite) -> int:
    x, low, high = c.root.args
    return _unary(c, c.value(x), "clip_v2", float(low.value), float(high.value))


def _softplus(c: Composite) -> int:
    return _unary(c, c.value(c.root.args[0]), "soft_relu", float(c.root.attrs.beta))


def _hardsigmoid(c: Composite) -> int:
    return _unary(c, c.only_param(), "hardsigmoid", c.find_scalar("multiply"), c.find_scalar("add"))


def _power(c: Composite) -> int:
    src, exponent = c.root.args
    return _unary(c, c.value(src), "pow", 1.0, scalar_of(exponent))  # type: ignore[arg-type]


_BINARY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
}


def _binary(c: Composite) -> int:
    algorithm = _BINARY[c.root.op.name.removeprefix("relax.")]
    left, right = c.root.args
    for number, tensor, swapped in ((scalar_of(right), left, False), (scalar_of(left), right, True)):
        if number is not None and shape_of(tensor) == c.shape:
            return _unary(c, c.value(tensor), *_with_scalar(algorithm, number, swapped))
    rank = len(c.shape)
    src, src1 = (c.builder.align(c.value(arg), rank) for arg in (left, right))
    if c.builder.values[src].shape != c.shape:
        src, src1 = src1, src
    return c.emit("binary", ir.Binary(algorithm), ("src", src), ("src1", src1))


def _with_scalar(algorithm: str, number: float, swapped: bool) -> tuple[str, float, float]:
    """x (algorithm) number, or number (algorithm) x, as an elementwise algorithm of oneDNN."""
    if algorithm == "div":
        return ("pow", number, -1.0) if swapped else ("linear", 1.0 / number, 0.0)
    return {
        "add": ("linear", 1.0, number),
        "sub": ("linear", -1.0, number) if swapped else ("linear", 1.0, -number),
        "mul": ("linear", number, 0.0),
        "max": ("clip_v2", number, float(np.finfo("float32").max)),
        "min": ("clip_v2", float(np.finfo("float32").min), number),
    }[algorithm]


def _prelu(c: Composite) -> int:
    src, alpha = (c.value(arg) for arg in c.root.args)
    rank = len(c.shape)
    axis = int(c.root.attrs.axis) % rank
    shape = tuple(c.builder.values[alpha].shape[0] if dim == axis else 1 for dim in range(rank))
    return c.emit("prelu", ir.PReLU(), ("src", src), ("weights", c.builder.reshape(alpha, shape)))


# --- data movement ---------------------------------------------------------------------------------------


def _concat(c: Composite) -> int:
    axis = int(c.root.attrs.axis) % len(c.shape)
    fields = c.definition(c.root.args[0]).fields
    return c.emit("concat", ir.Concat(axis), *[("src", c.value(field)) for field in fields])


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
    begin = _ints(attrs.pad_width)[::2]
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
    "channel_norm": _channel_norm,
    "instance_norm": _instance_norm,
    "eltwise": _eltwise,
    "clip": _clip,
    "softplus": _softplus,
    "softplus_stable": lambda c: _unary(c, c.only_param(), "soft_relu", 1.0),
    "swish": lambda c: _unary(c, c.only_param(), "swish", 1.0),
    "hardswish": lambda c: _unary(c, c.only_param(), "hardswish", 1 / 6, 0.5),
    "hardsigmoid": _hardsigmoid,
    "mish": lambda c: _unary(c, c.only_param(), "mish"),
    "elu": lambda c: _unary(c, c.only_param(), "elu", -c.find_scalar("multiply")),
    "power": _power,
    "binary": _binary,
    "prelu": _prelu,
    "concat": _concat,
    "reshape": _reshape,
    "permute": _permute,
    "channel_shuffle": _channel_shuffle,
    "resize": _resize,
    "pad": _pad,
}
