"""Real numbers that are sums of sizes over a number, ``(n - 1) / 2 + 1``, and whole numbers made of them.

    math.ceil(n / 4)        CeilToInt(IntTrueDiv(n, 4))           (n + 3) // 4
    round(n * 0.5)          RoundToInt(0.5 * ToFloat(n))          to the even one where two are as near

PyTorch computes the real number in float64, rounded after each step.  Taken are those that come to the same
whole number without: one quotient alone is by another number than a power of two, and nothing but a power of
two multiplies it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tvm import tirx

_EXACT = 2**20
"""Numerators and denominators up to which products with sizes are exact in float64."""


@dataclass(frozen=True)
class Quotient:
    """``(sum of sizes times factors + added) / under``, of integers, ``under`` more than none.

    Attributes
    ----------
    over : sizes as PyTorch knows them, and their factors.
    """

    over: tuple[tuple[Any, int], ...]
    added: int
    under: int

    @property
    def is_more_than_none(self) -> bool:
        """Whether it is known to be none or more: of sums, factors and sizes of which PyTorch knows it."""
        return self.added >= 0 and all(
            factor > 0 and bool(getattr(size, "is_nonnegative", True)) for size, factor in self.over
        )


_Parts = list[tuple[Any, Fraction]]
"""Sizes, or None for 1, with their factors."""


def quotient_of(expr: Any) -> Quotient | None:
    """A real number of PyTorch's as a quotient; None where it is none, or where float64 would round it."""
    parts = _parts(expr)
    if parts is None:
        return None
    under = math.lcm(*(factor.denominator for _, factor in parts))
    whole = [(size, int(factor * under)) for size, factor in parts]
    if max([under, *(abs(factor) for _, factor in whole)]) > _EXACT:
        return None
    sizes = tuple((size, factor) for size, factor in whole if size is not None)
    return Quotient(sizes, sum(factor for size, factor in whole if size is None), under)


def _parts(expr: Any) -> _Parts | None:
    if (number := _number(expr)) is not None:
        return [(None, number)]
    kind = type(expr).__name__
    args: Sequence[Any] = getattr(expr, "args", ())
    if kind == "ToFloat":
        return [(args[0], Fraction(1))]
    if kind in ("IntTrueDiv", "FloatTrueDiv"):
        by = _number(args[1])
        parts = [(args[0], Fraction(1))] if kind == "IntTrueDiv" else _parts(args[0])
        return None if not by or parts is None or not _is_exact(parts) else _times(parts, 1 / by)
    if kind == "Mul":
        factors = [number for arg in args if (number := _number(arg)) is not None]
        rest = [arg for arg in args if _number(arg) is None]
        parts = _parts(rest[0]) if len(rest) == 1 else None
        by = math.prod(factors, start=Fraction(1))
        fits = parts is not None and (_is_exact(parts) or abs(by.numerator) == 1)
        return _times(parts, by) if parts is not None and fits and _is_exact([(None, by)]) else None
    if kind == "Add":
        found = [_parts(arg) for arg in args]
        known = [parts for parts in found if parts is not None]
        if len(known) < len(found) or sum(not _is_exact(parts) for parts in known) > 1:
            return None
        return [part for parts in known for part in parts]
    return None


def _number(expr: Any) -> Fraction | None:
    """A number as a fraction; None for what is none."""
    if getattr(expr, "is_Integer", False):
        return Fraction(int(expr))
    return Fraction(float(expr)) if getattr(expr, "is_Float", False) else None


def _times(parts: _Parts, by: Fraction) -> _Parts:
    return [(size, factor * by) for size, factor in parts]


def _is_exact(parts: _Parts) -> bool:
    """Whether float64 holds the number for every size: denominators are powers of two."""
    return all(factor.denominator & (factor.denominator - 1) == 0 for _, factor in parts)


def ceiling(over: tirx.Expr, under: Any) -> tirx.Expr:
    """The least integer that is no less than a quotient."""
    return tirx.floordiv(over + under - 1, under)


def _nearest(over: tirx.Expr, under: int) -> tirx.Expr:
    """The nearest integer; of two as near the even one."""
    twice = over * 2 + under
    upper = tirx.floordiv(twice, 2 * under)
    is_between = 1 - tirx.min(tirx.floormod(twice, 2 * under), tirx.const(1, "int64"))
    return upper - is_between * tirx.floormod(upper, 2)


def _towards_zero(over: tirx.Expr, under: int) -> tirx.Expr:
    zero = tirx.const(0, "int64")
    return tirx.max(tirx.floordiv(over, under), zero) + tirx.min(ceiling(over, under), zero)


WHOLE: dict[str, Callable[[tirx.Expr, int], tirx.Expr]] = {
    "CeilToInt": ceiling,
    "FloorToInt": tirx.floordiv,
    "RoundToInt": _nearest,
    "TruncToInt": _towards_zero,
}
"""Whole numbers made of a quotient, by SymPy's names."""
