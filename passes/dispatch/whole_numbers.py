"""Operators whose rounding decides a whole number: what leads to a floor or a cast to integers by arithmetic.

    a = R.log(x);  b = R.divide(a, c);  d = R.multiply(b, 8);  e = R.astype(d, "int64")      a, b and d

Where the model's own arithmetic gives 2 exactly, a library that multiplies by 1 / c gives 1.9999999, and the
integer is another one: a whole difference, however small the error.  So those are left to TVM, which computes
each as it stands.  Rounding to the nearest, as quantised networks have it, is not among them: ties are rare.
"""

from __future__ import annotations

import tvm
from tvm import relax

from ..relax_types import operator_name

_CUTS = ("relax.floor", "relax.ceil", "relax.trunc")
_ARITHMETIC = frozenset(
    f"relax.{name}"
    for name in (
        *("add", "subtract", "multiply", "divide", "negative", "abs", "power", "sqrt", "rsqrt", "exp", "log"),
        *("minimum", "maximum", "clip", "where"),
    )
)


def whole_number_operators(mod: tvm.IRModule) -> set[str]:
    """Names of the operators that a module's functions use so."""
    found: set[str] = set()
    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            found |= _of_function(function)
    return found


def _of_function(function: relax.Function) -> set[str]:
    values: dict[relax.Var, relax.Expr] = {}
    pending: list[relax.Expr] = []

    def visit(binding: relax.Binding) -> None:
        if isinstance(binding, relax.VarBinding):
            values[binding.var] = binding.value
            if _cuts(binding.value):
                pending.extend(binding.value.args)

    for block in getattr(function.body, "blocks", ()):
        for binding in block.bindings:
            visit(binding)
    names: set[str] = set()
    seen: set[relax.Var] = set()
    while pending:
        expr = pending.pop()
        if isinstance(expr, tvm.ir.Var):
            if expr in seen or expr not in values:
                continue
            seen.add(expr)
            expr = values[expr]
        if isinstance(expr, relax.Call) and getattr(expr.op, "name", "") in _ARITHMETIC:
            names.add(operator_name(expr) or "")
            pending.extend(expr.args)
    return names - {""}


def _cuts(value: relax.Expr) -> bool:
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.Op):
        return False
    if value.op.name == "relax.astype":
        made, given = (str(getattr(one.ty, "dtype", "")) for one in (value, value.args[0]))
        return given.startswith(("float", "bfloat")) and made.startswith(("int", "uint"))
    return value.op.name in _CUTS
