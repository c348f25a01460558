"""TVM's operators that work element by element, and what they make of the padding of a blocked layout.

Such an operator gives the same numbers whatever the order of the elements, so it may run on a physical
buffer.  The table says what each does to numbers: run on what stands in the tail of its operands, it tells
what stands in the tail of its result.  Layouts that pad need an exact +0 there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf, expm1

import numpy as np

Number = np.generic
"""A number that knows its element type."""


def _reciprocal_root(x: Number) -> Number:
    return 1 / np.sqrt(x)


def _erf(x: Number) -> float:
    return erf(float(x))


def _relu(x: Number) -> Number:
    return np.maximum(x, 0)


def _selu(x: Number) -> float:
    number = float(x)
    return 1.0507009873554805 * (number if number > 0 else 1.6732632423543772 * expm1(number))


def _identity(x: Number) -> Number:
    return x


OPERATORS: dict[str, Callable[..., object]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "astype": _identity,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "bitwise_not": np.bitwise_not,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _erf,
    "exp": np.exp,
    "floor": np.floor,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "logical_not": np.logical_not,
    "negative": np.negative,
    "nn.relu": _relu,
    "nn.selu": _selu,
    "round": np.round,
    "rsqrt": _reciprocal_root,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    # two operands
    "add": np.add,
    "atan2": np.arctan2,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "divide": np.divide,
    "equal": np.equal,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "left_shift": np.left_shift,
    "less": np.less,
    "less_equal": np.less_equal,
    "log_add_exp": np.logaddexp,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.fmod,
    "multiply": np.multiply,
    "not_equal": np.not_equal,
    "power": np.power,
    "right_shift": np.right_shift,
    "subtract": np.subtract,
    # three operands
    "clip": np.clip,
    "where": np.where,
}


def tail_of(operator: str, operands: Sequence[Number | None], dtype: str) -> Number | None:
    """Computes an operator's result on one number from each operand; None where it is not known or traps."""
    if any(operand is None for operand in operands):
        return None
    try:
        with np.errstate(all="raise"):
            return np.asarray(OPERATORS[operator](*operands)).astype(dtype).flat[0]
    except (ArithmeticError, TypeError, ValueError):
        return None


def is_clean(tail: Number | None) -> bool:
    """True for the zero of which every byte is 0, which a padded layout must have in its tails."""
    return tail is not None and not any(tail.tobytes())
