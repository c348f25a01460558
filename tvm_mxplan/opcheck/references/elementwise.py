"""Functions of one number and of two, as steps and as post-ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate
from .operands import Operands

# Errors that oneDNN's tests (benchdnn, driver eltwise) allow in float32: relative to the result, or absolute
# where a difference of two near numbers cancels.
_EXACT = 4 * UNIT_ROUNDOFF
_CLOSE = 4e-6
_ROUGH = 4e-5


@dataclass(frozen=True)
class Function:
    """``compute(x, alpha, beta)``; ``relative`` is its error, in absolute terms where it ``cancels``.

    Attributes
    ----------
    takes_one : whether 1 is taken from an exponential, whose own rounding is left of a small result.
    """

    compute: Callable[[Array, float, float], Array]
    relative: float = _EXACT
    cancels: bool = False
    takes_one: bool = False


def _soft_relu(x: Array, alpha: float) -> Array:
    return np.logaddexp(0.0, alpha * x) / alpha


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


FUNCTIONS: dict[str, Function] = {
    "relu": Function(lambda x, a, b: np.where(x > 0, x, a * x if a else 0.0)),
    "tanh": Function(lambda x, a, b: np.tanh(x), _ROUGH),
    "elu": Function(lambda x, a, b: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))), _ROUGH, True, True),
    "square": Function(lambda x, a, b: np.square(x)),
    "abs": Function(lambda x, a, b: np.abs(x)),
    "sqrt": Function(lambda x, a, b: np.sqrt(x)),
    "linear": Function(lambda x, a, b: a * x + b, cancels=True),
    "soft_relu": Function(lambda x, a, b: _soft_relu(x, a), _ROUGH, True),
    "hardsigmoid": Function(lambda x, a, b: np.clip(a * x + b, 0, 1), cancels=True),
    "logistic": Function(lambda x, a, b: special.expit(x), _CLOSE),
    "mish": Function(lambda x, a, b: x * np.tanh(_soft_relu(x, 1.0)), _ROUGH, True),
    "exp": Function(lambda x, a, b: np.exp(x), _CLOSE),
    "gelu_tanh": Function(lambda x, a, b: _gelu_tanh(x), _ROUGH, True),
    "gelu_erf": Function(lambda x, a, b: x * special.ndtr(x), _CLOSE, True),
    "swish": Function(lambda x, a, b: x * special.expit(a * x), _ROUGH),
    "log": Function(lambda x, a, b: np.log(x), _ROUGH, True),
    "clip": Function(lambda x, a, b: np.clip(x, a, b)),
    "clip_v2": Function(lambda x, a, b: np.clip(x, a, b)),
    "hardswish": Function(lambda x, a, b: x * np.clip(a * x + b, 0, 1), cancels=True),
    "pow": Function(lambda x, a, b: a * np.power(x, b), _CLOSE),
    "round": Function(lambda x, a, b: np.round(x)),
    "ceil": Function(lambda x, a, b: np.ceil(x)),
    "cos": Function(lambda x, a, b: np.cos(x), _CLOSE),
    "erf": Function(lambda x, a, b: special.erf(x), _CLOSE),
    "floor": Function(lambda x, a, b: np.floor(x)),
    "negative": Function(lambda x, a, b: -x),
    "rsqrt": Function(lambda x, a, b: 1 / np.sqrt(x)),
    "sign": Function(lambda x, a, b: np.sign(x)),
    "sin": Function(lambda x, a, b: np.sin(x), _CLOSE),
    "trunc": Function(lambda x, a, b: np.trunc(x)),
}

_BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "gt": np.greater,
    "ge": np.greater_equal,
    "le": np.less_equal,
}
BINARY_ALGORITHMS = frozenset(_BINARY)


def eltwise(attrs: ir.Eltwise, operands: Operands) -> Estimate:
    return apply_eltwise(Estimate(operands.src), attrs.algorithm, attrs.alpha, attrs.beta)


def binary(attrs: ir.Binary, operands: Operands) -> Estimate:
    return apply_binary(Estimate(operands.src), attrs.algorithm, operands["src1"])


def prelu(_attrs: ir.PReLU, operands: Operands) -> Estimate:
    src = operands.src
    return Estimate(np.where(src > 0, src, src * operands["weights"])).rounded()


def apply_eltwise(estimate: Estimate, algorithm: str, alpha: float, beta: float) -> Estimate:
    """A function of an estimate; what its error becomes is seen at both ends of it.

    An end at which the function is not defined, as a root is below zero, bounds nothing.
    """
    function = FUNCTIONS[algorithm]
    value = function.compute(estimate.value, alpha, beta)
    size = np.abs(value)
    if function.cancels:
        size = size + np.minimum(np.abs(estimate.value), 1) * max(1, abs(alpha)) + abs(beta)
    error = function.relative * size
    if function.takes_one:
        error = error + _EXACT * abs(alpha) * (estimate.value < 0)
    if np.any(estimate.error):
        for end in (estimate.value - estimate.error, estimate.value + estimate.error):
            error = error + np.abs(function.compute(end, alpha, beta) - value)
    return Estimate(value, _bounded(error))


def apply_binary(estimate: Estimate, algorithm: str, other: Array) -> Estimate:
    """``estimate (algorithm) other``, ``other`` broadcast."""
    with np.errstate(all="ignore"):  # integers by 0 are 0
        value = _function_of(algorithm, other)(estimate.value, other)
    value = np.asarray(value, np.result_type(estimate.value))
    if value.dtype.kind == "i":
        return Estimate(value)
    match algorithm:
        case "gt" | "ge" | "le":  # 0 or 1, whichever where the error reaches to the other side
            return Estimate(value, (np.abs(estimate.value - other) <= estimate.error) * (estimate.error > 0))
        case "mul":
            error = _bounded(estimate.error * np.abs(other))
        case "div":
            error = _bounded(estimate.error / np.abs(other))
        case _:
            error = np.asarray(estimate.error)
    if algorithm in ("min", "max"):
        return Estimate(value, error)
    return Estimate(value, error).rounded(2)


def _function_of(algorithm: str, other: Array) -> np.ufunc:
    return np.floor_divide if algorithm == "div" and other.dtype.kind == "i" else _BINARY[algorithm]


def _bounded(error: Array | float) -> Array:
    """The error, infinite where arithmetic gives none."""
    return np.where(np.isnan(error), np.inf, error)


def apply_sum(estimate: Estimate, scale: float, added: Array) -> Estimate:
    """``estimate + scale * added``."""
    scaled = scale * added
    error = estimate.error + UNIT_ROUNDOFF * np.abs(scaled)
    return Estimate(estimate.value + scaled, error).rounded()
