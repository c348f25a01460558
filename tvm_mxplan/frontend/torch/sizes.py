"""Sizes as PyTorch knows them, which are expressions of SymPy, as expressions of TVM.

SymPy comes with PyTorch; expressions are told apart by the names of their classes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tvm import relax, tirx

from ...errors import UnsupportedError
from ..onnx.dimensions.dims import Dim, expression, simplified
from .node import Emitter

Variables = Mapping[str, Dim]
"""Named dimensions, or numbers in their place, by the name of PyTorch's symbol."""


def size_of(size: Any, variables: Variables) -> Dim:
    """A size as a number or an expression over named dimensions.

    Parameters
    ----------
    size : an ``int``, a ``torch.SymInt`` or an expression of SymPy.

    Raises
    ------
    UnsupportedError : a size that depends on the numbers in a tensor, or arithmetic that no size should need.
    """
    if isinstance(size, int):
        return int(size)
    node = getattr(size, "node", None)
    return simplified(expression(_converted(size if node is None else node.expr, variables)))


def _converted(expr: Any, variables: Variables) -> Dim:
    if getattr(expr, "is_Integer", False):
        return int(expr)
    kind = type(expr).__name__
    if getattr(expr, "is_Symbol", False):
        name = str(expr)
        if name not in variables:
            raise UnsupportedError(
                f"the size {name} depends on numbers in a tensor; expected one that follows from input sizes"
            )
        return variables[name]
    if kind == "Pow" and getattr(expr.args[1], "is_Integer", False) and int(expr.args[1]) > 0:
        base = _converted(expr.args[0], variables)
        return functools.reduce(operator.mul, [base] * int(expr.args[1]))
    if kind in ("TruncToInt", "FloorToInt") and (share := _share(expr.args[0])) is not None:
        over, under, size = share
        return tirx.floordiv(expression(_converted(size, variables)) * over, under)
    if kind not in _OPERATORS:
        raise UnsupportedError(f"the size {expr} is computed by {kind}; expected sums, products, quotients")
    args = [arg for arg in expr.args if not (kind == "Min" and _is_endless(arg))]
    parts = [expression(_converted(part, variables)) for part in args]
    return functools.reduce(_OPERATORS[kind], parts)


def _is_endless(expr: Any) -> bool:
    """Whether a number is the end of a slice that has none, less than which every size is."""
    return getattr(expr, "is_Integer", False) and int(expr) >= ENDLESS


def _share(expr: Any) -> tuple[int, int, Any] | None:
    """A size times a number as numerator, denominator and size; None where float64 would round it."""
    if type(expr).__name__ != "Mul" or len(expr.args) != 2:
        return None
    factor, size = sorted(expr.args, key=lambda part: not getattr(part, "is_number", False))
    if type(size).__name__ != "ToFloat" or not getattr(factor, "is_number", False):
        return None
    over, under = float(factor).as_integer_ratio()
    return (over, under, size.args[0]) if over > 0 and max(over, under) <= _EXACT else None


ENDLESS = 2**62
"""From here on, the end of a slice is the end of its axis."""
_EXACT = 2**20
"""Numerators and denominators up to which products with sizes are exact in float64."""


def _ceiling(left: tirx.Expr, right: tirx.Expr) -> tirx.Expr:
    return tirx.floordiv(left + right - 1, right)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": tirx.floordiv,
    "CleanDiv": tirx.floordiv,
    "CeilDiv": _ceiling,
    "Mod": tirx.floormod,
    "PythonMod": tirx.floormod,
    "Max": tirx.max,
    "Min": tirx.min,
}


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
