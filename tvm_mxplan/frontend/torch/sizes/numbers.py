"""Real numbers that follow from sizes, ``n ** -0.5``, as tensors without axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvm import relax

from ....errors import UnsupportedError
from ..node import Emitter
from .expressions import Variables, size_of

_TYPE = "float64"
"""The type of real numbers that follow from sizes, ``n ** -0.5``, as in Python."""


def number_of(emitter: Emitter, number: Any, variables: Variables) -> relax.Expr:
    """A ``torch.SymFloat`` as a tensor without axes.

    Raises
    ------
    UnsupportedError : a function of sizes that is not known here, or sizes that tensors decide.
    """
    return _computed(emitter, number.node.expr, variables)


def _computed(emitter: Emitter, expr: Any, variables: Variables) -> relax.Expr:
    kind = type(expr).__name__
    if getattr(expr, "is_number", False):
        return relax.const(float(expr), _TYPE)
    if getattr(expr, "is_integer", False) and kind not in _FUNCTIONS:
        return emitter.scalar(size_of(expr, variables), _TYPE)
    if kind not in _FUNCTIONS:
        raise UnsupportedError(
            f"the number {expr} is computed of sizes by {kind}; expected sums, products, quotients, powers, "
            "square roots"
        )
    parts = [_computed(emitter, part, variables) for part in expr.args]
    function = _FUNCTIONS[kind]
    if len(parts) == 1:
        return emitter.emit(function(*parts))
    return functools.reduce(lambda left, right: emitter.emit(function(left, right)), parts)


_FUNCTIONS: dict[str, Callable[..., relax.Expr]] = {
    "Add": relax.op.add,
    "Mul": relax.op.multiply,
    "Pow": relax.op.power,
    "FloatPow": relax.op.power,
    "FloatTrueDiv": relax.op.divide,
    "IntTrueDiv": relax.op.divide,
    "Max": relax.op.maximum,
    "Min": relax.op.minimum,
    "OpaqueUnaryFn_exp": relax.op.exp,
    "OpaqueUnaryFn_log": relax.op.log,
    "OpaqueUnaryFn_sqrt": relax.op.sqrt,
    "ToFloat": lambda number: relax.op.astype(number, _TYPE),
}
