"""Arithmetic on dimensions: numbers, and expressions over named dimensions that TVM's analyzer simplifies.

Named dimensions are taken to be no less than 0, and to lie within the bounds that a caller states for them.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import tvm
import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer

from . import polynomials

Dim: TypeAlias = int | tirx.Expr
"""A number, or an expression of type int64."""

Bounds = Mapping[str, tuple[int, int]]
"""The smallest and the largest extent of named dimensions."""

_bounds: contextvars.ContextVar[Bounds] = contextvars.ContextVar("bounds", default={})  # noqa: B039 (not changed)


@contextlib.contextmanager
def within(bounds: Bounds) -> Iterator[None]:
    """Within this context, named dimensions have these bounds."""
    token = _bounds.set(bounds)
    try:
        yield
    finally:
        _bounds.reset(token)


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
    return floor_divided(whole, rest)


def safely_divided(dividend: Dim, divisor: Dim) -> Dim:
    """The same, by 1 where a call's divisor is 0: a processor stops a program that divides by 0."""
    found = divided(dividend, divisor)
    floors = [expr for expr in _inside(found) if isinstance(expr, tirx.FloorDiv)]
    if all(compared(">=", simplified(floor.b), 1) is True for floor in floors):
        return found
    return simplified(tirx.floordiv(expression(dividend), tirx.max(expression(divisor), expression(1))))


def floor_divided(dividend: Dim, divisor: Dim) -> Dim:
    """``dividend // divisor``, without the division where it leaves nothing: ``n`` of ``(2 * n) // 2``."""
    over, under = polynomials.polynomial(dividend), polynomials.polynomial(divisor)
    exact = None if over is None or under is None else polynomials.quotient(over, under)
    if exact is not None:
        return simplified(polynomials.expression(exact))
    return simplified(tirx.floordiv(expression(dividend), expression(divisor)))


def same(left: Dim, right: Dim) -> bool:
    """Whether two dimensions are equal whatever the named ones are; False where that is not known."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if tvm_ffi.structural_equal(expression(left), expression(right)):
        return True
    difference = simplified(expression(left) - expression(right))
    if isinstance(difference, int):
        return difference == 0
    return polynomials.polynomial(difference) == polynomials.NOTHING


def not_negative(dim: Dim) -> bool:
    """Whether a number is no less than 0 in every call that has something to compute: with no extent of 0."""
    bounds = _bounds.get()
    extents = {one.name: bounds.get(one.name, (0, _LARGEST - 1)) for one in variables(dim)}
    with within({name: (max(low, 1), max(high, 1)) for name, (low, high) in extents.items()}):
        return compared(">=", dim, 0) is True or compared(">=", _without_remainders(dim), 0) is True


def _without_remainders(dim: Dim) -> Dim:
    """``n - n % 8`` as ``n // 8 * 8``, of which the analyzer knows more."""
    terms = polynomials.polynomial(dim)
    return dim if terms is None else simplified(polynomials.expression(terms))


def compared(operator: str, left: Dim, right: Dim) -> bool | None:
    """Returns the result of a comparison, whatever the named dimensions are; None where it depends on them.

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


def implied(left: Dim, right: Dim, number: int) -> bool:
    """Whether ``left`` is ``number`` wherever ``right`` is; False where that is not known."""
    if same(left, right) or compared("==", right, number) is False:
        return True
    a, b = expression(left), expression(_where_it_is(right, number))
    premise = b.equal(tirx.const(number, "int64"))
    both = tirx.And(premise, a.equal(tirx.const(number, "int64")))
    analyzer = _analyzer(both)
    with analyzer.constraint_scope(premise):
        return bool(analyzer.can_prove(a.equal(tirx.const(number, "int64"))))


def _where_it_is(dim: Dim, number: int) -> Dim:
    """``dim``, or what of it must be ``number`` for the whole to be: ``n`` of ``min(n, 64)`` for 1."""
    for kind, binds in ((tirx.Min, int.__gt__), (tirx.Max, int.__lt__)):
        if isinstance(dim, kind):
            for other, bound in ((dim.a, simplified(dim.b)), (dim.b, simplified(dim.a))):
                if isinstance(bound, int) and binds(bound, number):
                    return _where_it_is(simplified(other), number)
    return dim


_COMPARED = {
    "==": int.__eq__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
}


def variables(dim: Dim) -> list[tirx.Var]:
    """The named dimensions that an expression reads, each once."""
    return list(dict.fromkeys(expr for expr in _inside(dim) if isinstance(expr, tirx.Var)))


def _inside(dim: Dim) -> Iterator[object]:
    """The expression and all in it."""
    pending: list[object] = [dim]
    while pending:
        expr = pending.pop()
        yield expr
        if not isinstance(expr, int | tirx.IntImm | tirx.Var):
            parts = [getattr(expr, field, None) for field in _PARTS]
            pending += [part for part in [*parts, *getattr(expr, "args", ())] if tvm.ir.is_prim_expr(part)]


_PARTS = ("a", "b", "value", "condition", "true_value", "false_value")
"""Fields of TVM's expressions that hold other expressions."""


def _factors(dim: Dim) -> list[Dim]:
    if isinstance(dim, tirx.Mul):
        return [*_factors(simplified(dim.a)), *_factors(simplified(dim.b))]
    return [dim]


def _analyzer(expr: object) -> Analyzer:
    """An analyzer that knows the bounds of the named dimensions of an expression."""
    analyzer, bounds = Analyzer(), _bounds.get()
    for variable in variables(expr):
        low, high = bounds.get(variable.name, (0, _LARGEST - 1))
        analyzer.bind(variable, tvm.ir.Range(tirx.const(low, "int64"), tirx.const(high + 1, "int64")))
    return analyzer


_LARGEST = 2**40
"""More than any tensor of this machine has elements."""
