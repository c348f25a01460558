"""Translates elementwise composites: functions of one tensor, and of two with broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite, product
from tvm_mxplan.byoc.elementwise import ACTIVATION_STEPS, BINARY, ELTWISE, with_scalar
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import scalar_of, shape_of

from ..broadcasting import broadcast_runs, is_fast

# --- of one tensor ---------------------------------------------------------------------------------------


def _unary(c: Composite, src: int, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> int:
    return c.emit("eltwise", ir.Eltwise(algorithm, alpha, beta), ("src", src))


def _of_only_param(algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> Callable[[Composite], int]:
    return lambda c: _unary(c, c.only_param(), algorithm, alpha, beta)


def _eltwise(c: Composite) -> int:
    return _unary(c, c.value(c.root.args[0]), *ELTWISE[c.root.op.name.removeprefix("relax.")])


def _leaky_relu(c: Composite) -> int:
    return _unary(c, c.value(c.root.args[0]), "relu", float(c.root.attrs.alpha))


def _exp(c: Composite) -> int:
    """max(exp(x), x): exp(x) for every number.

    oneDNN 3.2's exp makes infinity of NaN; its maximum gives the second operand where one is NaN.
    """
    return _exp_keeping_nan(c, c.value(c.root.args[0]))


def _exp_keeping_nan(c: Composite, src: int) -> int:
    return c.emit("binary", ir.Binary("max"), ("src", _unary(c, src, "exp")), ("src1", src))


def _clip(c: Composite) -> int:
    x, low, high = c.root.args
    return _unary(c, c.value(x), "clip_v2", float(low.value), float(high.value))


def _softplus(c: Composite) -> int:
    return _soft_relu(c, c.value(c.root.args[0]), float(c.root.attrs.beta))


def _soft_relu(c: Composite, src: int, beta: float) -> int:
    """soft_relu between two functions that log(1 + exp(x)) lies between: 1 / (1 + exp(-x)) and exp(x).

    Of x far below 0, oneDNN's soft_relu is off by up to 8e-6 either way, so it may be less than 0.
    """
    scaled = src if beta == 1 else _unary(c, src, "linear", beta)
    least, most = _unary(c, scaled, "logistic"), _exp_keeping_nan(c, scaled)
    found = c.emit("binary", ir.Binary("max"), ("src", _unary(c, scaled, "soft_relu", 1.0)), ("src1", least))
    found = c.emit("binary", ir.Binary("min"), ("src", found), ("src1", most))
    return found if beta == 1 else _unary(c, found, "linear", 1 / beta)


def _hard(algorithm: str) -> Callable[[Composite], int]:
    """hardsigmoid or hardswish written as a clipped line; hardswish multiplies by x in the end."""
    return lambda c: _unary(c, c.only_param(), algorithm, c.find_scalar("multiply"), c.find_scalar("add"))


def _elu(c: Composite) -> int:
    return _unary(c, c.only_param(), "elu", -c.find_scalar("multiply"))


def _power(c: Composite) -> int:
    src, exponent = c.value(c.root.args[0]), scalar_of(c.root.args[1])
    if exponent == 0.5:
        # oneDNN takes the square root, which is another function of -inf and -0.
        return _unary(c, _unary(c, src, "pow", 1.0, 0.25), "square")
    return _unary(c, src, "pow", 1.0, exponent)  # type: ignore[arg-type]


# --- of two tensors --------------------------------------------------------------------------------------


def _binary(c: Composite) -> int:
    algorithm = BINARY[c.root.op.name.removeprefix("relax.")]
    left, right = c.root.args
    for number, tensor, swapped in ((scalar_of(right), left, False), (scalar_of(left), right, True)):
        function = None if number is None else with_scalar(algorithm, number, swapped)
        if function is not None and shape_of(tensor) == c.shape:
            return _unary(c, c.value(tensor), *function)
    src, src1 = (_operand(c, arg) for arg in c.root.args)
    if shape_of(left) == c.shape:
        return _broadcast_binary(c, algorithm, src, src1, None)
    return _broadcast_binary(c, algorithm, src1, src, _UNDO_SWAP.get(algorithm))


def _operand(c: Composite, expr: relax.Expr) -> int:
    """A value; a number as a tensor of the result's rank, since oneDNN has none of rank 0."""
    number = scalar_of(expr)
    if number is None:
        return c.value(expr)
    return c.builder.constant(np.full((1,) * len(c.shape), number, "float32"))


# oneDNN broadcasts the second operand only: a - x = -(x - a), a / x = (x / a) ^ -1
_UNDO_SWAP = {"sub": ir.Eltwise("linear", -1.0, 0.0), "div": ir.Eltwise("pow", 1.0, -1.0)}


def _broadcast_binary(c: Composite, algorithm: str, src: int, src1: int, after: ir.Eltwise | None) -> int:
    src1 = c.builder.align(src1, len(c.shape))
    shape, part = c.shape, c.builder.values[src1].shape
    if not is_fast(part, shape):
        runs = broadcast_runs(part, shape)
        shape = tuple(product(tuple(c.shape[axis] for axis in axes)) for _, axes in runs)
        part = tuple(1 if broadcast else dim for (broadcast, _), dim in zip(runs, shape, strict=True))
    operands = [("src", c.builder.reshape(src, shape)), ("src1", c.builder.reshape(src1, part))]
    result = c.builder.step("binary", ir.Binary(algorithm), shape, operands)
    if after is not None:
        result = c.builder.step("eltwise", after, shape, [("src", result)])
    return c.builder.reshape(result, c.shape)


def _prelu(c: Composite) -> int:
    src, alpha = (c.value(arg) for arg in c.root.args)
    slope = scalar_of(c.root.args[1])
    if slope is not None:
        return _unary(c, src, "relu", slope)
    rank = len(c.shape)
    axis = int(c.root.attrs.axis) % rank
    channels = c.builder.values[alpha].shape[0]
    if axis == 1:
        weights = c.builder.reshape(alpha, (1, channels, *(1,) * (rank - 2)))
        return c.emit("prelu", ir.PReLU(), ("src", src), ("weights", weights))
    # oneDNN has but reference code for slopes along another axis than the second one.
    flat = (product(c.shape[:axis]), channels, product(c.shape[axis + 1 :]))
    operands = [
        ("src", c.builder.reshape(src, flat)),
        ("weights", c.builder.reshape(alpha, (1, channels, 1))),
    ]
    return c.builder.reshape(c.builder.step("prelu", ir.PReLU(), flat, operands), c.shape)


ELEMENTWISE: dict[str, Callable[[Composite], int]] = {
    "eltwise": _eltwise,
    "leaky_relu": _leaky_relu,
    "exp": _exp,
    "clip": _clip,
    "softplus": _softplus,
    **{name: _of_only_param(*step) for name, step in ACTIVATION_STEPS.items()},
    "softplus_stable": lambda c: _soft_relu(c, c.only_param(), 1.0),
    "hardswish_line": _hard("hardswish"),
    "hardsigmoid": _hard("hardsigmoid"),
    "elu": _elu,
    "power": _power,
    "binary": _binary,
    "prelu": _prelu,
}
