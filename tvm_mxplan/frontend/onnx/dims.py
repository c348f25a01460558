"""Arithmetic on dimensions: numbers, and expressions over named dimensions that TVM's analyzer simplifies.

Named dimensions are taken to be no less than 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm.sym import Analyzer

Dim = int | tirx.Expr
"""A number, or an expression of type int64."""


def simplified(dim: object) -> Dim:
    """The dimension in its simplest form; an ``int`` where it is a number."""
    if isinstance(dim, tirx.IntImm):
        return int(dim.value)
    if not tvm.ir.is_prim_expr(dim):
        return int(dim)  # type: ignore[call-overload]
    simple = _analyzer(dim).simplify(dim)
    return int(simple.value) if isinstance(simple, tirx.IntImm) else simple


def expression(dim: Dim) -> tirx.Expr:
    """The dimension as an expression of type int64."""
    return tirx.const(dim, "int64") if isinstance(dim, int) else dim


def product(dims: Sequence[Dim]) -> Dim:
    """The product of dimensions; 1 for none."""
    number = math.prod(dim for dim in dims if isinstance(dim, int))
    rest = [dim for dim in dims if not isinstance(dim, int)]
    result: Dim = number
    for dim in rest:
        result = result * dim
    return simplified(result)


def divided(dividend: Dim, divisor: Dim) -> Dim:
    """``dividend // divisor`` of positive dimensions; factors that both have are left out first."""
    over, under = _factors(dividend), _factors(divisor)
    for factor in list(under):
        at = next((i for i, other in enumerate(over) if same(factor, other)), None)
        if at is not None:
            under.remove(factor)
            del over[at]
    number = math.prod(factor for factor in over if isinstance(factor, int))
    by = math.prod(factor for factor in under if isinstance(factor, int))
    common = math.gcd(number, by)
    if common > 1:
        over = [number // common, *(factor for factor in over if not isinstance(factor, int))]
        under = [by // common, *(factor for factor in under if not isinstance(factor, int))]
    rest = product(under)
    whole = product(over)
    if isinstance(rest, int) and isinstance(whole, int):
        return whole // rest
    if isinstance(rest, int) and rest == 1:
        return whole
    return simplified(tirx.floordiv(expression(whole), expression(rest)))


def same(left: Dim, right: Dim) -> bool:
    """Whether two dimensions are equal whatever the named ones are; False where that is not known."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    difference = simplified(expression(left) - expression(right))
    return isinstance(difference, int) and difference == 0


def compared(operator: str, left: Dim, right: Dim) -> bool | None:
    """What a comparison gives whatever the named dimensions are; None where it depends on them.

    Parameters
    ----------
    operator : one of ``==``, ``<``, ``<=``, ``>``, ``>=``.
    """
    if isinstance(left, int) and isinstance(right, int):
        return _COMPARED[operator](left, right)
    a, b = expression(left), expression(right)
    condition = {"==": a.equal(b), "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]
    analyzer = _analyzer(condition)
    if analyzer.can_prove(condition):
        return True
    if analyzer.can_prove(tirx.Not(condition)):
        return False
    return None


_COMPARED = {
    "==": int.__eq__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
}


def variables(dim: Dim) -> list[tirx.Var]:
    """The named dimensions that an expression reads, each once."""
    found: dict[tirx.Var, None] = {}
    pending: list[object] = [dim]
    while pending:
        expr = pending.pop()
        if isinstance(expr, tirx.Var):
            found[expr] = None
        elif not isinstance(expr, int | tirx.IntImm):
            parts = [getattr(expr, field, None) for field in _PARTS]
            pending += [part for part in [*parts, *getattr(expr, "args", ())] if tvm.ir.is_prim_expr(part)]
    return list(found)


_PARTS = ("a", "b", "value", "condition", "true_value", "false_value")
"""Fields of TVM's expressions that hold other expressions."""


def _factors(dim: Dim) -> list[Dim]:
    if isinstance(dim, tirx.Mul):
        return [*_factors(simplified(dim.a)), *_factors(simplified(dim.b))]
    return [dim]


def _analyzer(expr: object) -> Analyzer:
    """An analyzer that knows the named dimensions of an expression to be no less than 0."""
    analyzer = Analyzer()
    for variable in variables(expr):  # type: ignore[arg-type]
        analyzer.bind(variable, tvm.ir.Range(tirx.const(0, "int64"), tirx.const(_LARGEST, "int64")))
    return analyzer


_LARGEST = 2**40
"""More than any tensor of this machine has elements."""
