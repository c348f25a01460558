"""Sizes as PyTorch knows them, which are expressions of SymPy, as expressions of TVM.

SymPy comes with PyTorch; expressions are told apart by the names of their classes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx

from ....errors import UnsupportedError
from ...onnx.dimensions.dims import Dim, expression, simplified
from .quotients import WHOLE, ceiling, quotient_of

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
    if kind in WHOLE and (quotient := quotient_of(expr.args[0])) is not None:
        over = sum(_converted(size, variables) * factor for size, factor in quotient.over)
        if kind == "TruncToInt" and quotient.is_more_than_none:
            kind = "FloorToInt"
        return WHOLE[kind](expression(over + quotient.added), quotient.under)
    if kind not in _OPERATORS:
        raise UnsupportedError(f"the size {expr} is computed by {kind}; expected sums, products, quotients")
    args = [arg for arg in expr.args if not (kind == "Min" and _is_endless(arg))]
    parts = [expression(_converted(part, variables)) for part in args]
    return functools.reduce(_OPERATORS[kind], parts)


def _is_endless(expr: Any) -> bool:
    """Whether a number is the end of a slice that has none, less than which every size is."""
    return getattr(expr, "is_Integer", False) and int(expr) >= ENDLESS


ENDLESS = 2**62
"""From here on, the end of a slice is the end of its axis."""


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": tirx.floordiv,
    "CleanDiv": tirx.floordiv,
    "CeilDiv": ceiling,
    "Mod": tirx.floormod,
    "PythonMod": tirx.floormod,
    "Max": tirx.max,
    "Min": tirx.min,
}
