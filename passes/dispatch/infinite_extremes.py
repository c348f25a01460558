"""Reductions to the largest or the smallest number that are compared with an infinity.

    a = R.max(mask, axis=[-1]);  b = R.equal(a, -inf)      a

A row of -inf alone has the largest number -inf.  A library may begin at the smallest number there is, and
then the row is none that is masked entirely, which is what such a comparison asks.  So these are left to TVM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import tvm
from tvm import relax

from ..relax_types import RESHAPES, operator_name, scalar_of, values_by_function

_REDUCTIONS = ("relax.max", "relax.min")
_COMPARISONS = tuple(
    f"relax.{name}"
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
)  # fmt: skip
_TESTS = ("relax.isinf", "relax.isfinite")
_MOVES = tuple(f"relax.{name}" for name in (*RESHAPES, "permute_dims", "broadcast_to", "astype"))


def infinite_extremes(mod: tvm.IRModule) -> set[str]:
    """Names of the operators that a module's functions use so."""
    return {name for values in values_by_function(mod) for name in _of_function(values)}


def _of_function(values: Mapping[tvm.ir.Var, relax.Expr]) -> set[str]:
    pending = [arg for value in values.values() for arg in _asked(value, values)]
    names: set[str] = set()
    while pending:
        value = values.get(pending.pop())
        kind = getattr(getattr(value, "op", None), "name", "")
        if kind in _MOVES:
            pending.append(value.args[0])  # type: ignore[union-attr]
        elif kind in _REDUCTIONS:
            names.add(operator_name(value) or "")
    return names - {""}


def _asked(value: relax.Expr, values: Mapping[tvm.ir.Var, relax.Expr]) -> list[relax.Expr]:
    """The value that another one asks whether it is infinite."""
    kind = getattr(getattr(value, "op", None), "name", "")
    if kind in _TESTS:
        return [value.args[0]]
    if kind not in _COMPARISONS:
        return []
    left, right = value.args
    return [one for one, other in ((left, right), (right, left)) if _is_infinite(other, values)]


def _is_infinite(expr: relax.Expr, values: Mapping[tvm.ir.Var, relax.Expr]) -> bool:
    number = scalar_of(values.get(expr, expr) if isinstance(expr, relax.Var) else expr)
    return number is not None and math.isinf(number)
