"""Operators whose rounding decides a whole number: what leads to a floor or a cast to integers by arithmetic.

    a = R.log(x);  b = R.divide(a, c);  d = R.multiply(b, 8);  e = R.astype(d, "int64")      a, b and d

Where the model's own arithmetic gives 2 exactly, a library that multiplies by 1 / c gives 1.9999999, and the
integer is another one: a whole difference, however small the error.  So those are left to TVM, which computes
each as it stands, or to a library that does (``Backend.literal``): a sum as a pool, which is a mean times a
number, is none.  Rounding to the nearest, as quantised networks have it, is not among them: ties are rare.
Nor is what comes from a convolution or a matrix product: their own digits depend on the library already, and
the scale, bias and sums behind them, up to the cast to pixels at the end of a network, are not exact either.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

from ..relax_types import dtype_of, operator_name, values_by_function

_CUTS = ("relax.floor", "relax.ceil", "relax.trunc")
_ARITHMETIC = frozenset(
    f"relax.{name}"
    for name in (
        *("add", "subtract", "multiply", "divide", "negative", "abs", "power", "sqrt", "rsqrt", "exp", "log"),
        *("minimum", "maximum", "clip", "where", "sum", "mean"),
    )
)
_PRODUCTS = ("relax.nn.conv", "relax.matmul", "relax.nn.attention")
"""Beginnings of the kinds that add up products of numbers with digits of their own."""


def whole_number_operators(mod: tvm.IRModule) -> set[str]:
    """Names of the operators that a module's functions use so."""
    return {name for values in values_by_function(mod) for name in _of_function(values)}


def _of_function(values: Mapping[tvm.ir.Var, relax.Expr]) -> set[str]:
    pending = [arg for value in values.values() if _cuts(value) for arg in value.args]
    from_products = _from_products(values) if pending else set()
    names: set[str] = set()
    seen: set[tvm.ir.Var] = set()
    while pending:
        expr = pending.pop()
        if expr not in values or expr in seen or expr in from_products:
            continue
        seen.add(expr)
        value = values[expr]
        if isinstance(value, relax.Call) and getattr(value.op, "name", "") in _ARITHMETIC:
            names.add(operator_name(value) or "")
            pending.extend(value.args)
    return names - {""}


def _from_products(values: Mapping[tvm.ir.Var, relax.Expr]) -> set[tvm.ir.Var]:
    """Variables with digits of convolutions and of matrix products; integers have no such digits."""
    found: set[tvm.ir.Var] = set()
    for variable, value in values.items():
        made_here = isinstance(value, relax.Call) and getattr(value.op, "name", "").startswith(_PRODUCTS)
        if not _is_integer(variable) and (
            made_here or any(read in found for read in relax.analysis.free_vars(value))
        ):
            found.add(variable)
    return found


def _cuts(value: relax.Expr) -> bool:
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.Op):
        return False
    if value.op.name == "relax.astype":
        return _is_integer(value) and dtype_of(value.args[0]).startswith(("float", "bfloat"))
    return value.op.name in _CUTS


def _is_integer(expr: relax.Expr) -> bool:
    return dtype_of(expr).startswith(("int", "uint", "bool"))
