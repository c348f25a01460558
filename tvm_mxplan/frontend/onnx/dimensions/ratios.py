"""Arithmetic on quotients of dimensions: what a model computes in floating point on its way to a size.

    scale = Cast(Shape(y)[2]) / Cast(Shape(x)[2])      (2 * h) / h      2
    half = Floor(Cast(h) * 0.5)                        h / 2            h // 2
    most = Floor(Cast(h) * 0.7)                        7 * h / 10       7 * h // 10

A float that is no fraction of powers of two stands for the simplest one near it.  What the model computes is
rounded; a quotient is made only where the float is the quotient itself wherever a float can be, so that both
round to the same size: 10 * 0.7 is 7 in float32, though 0.7 in float32 is less than 7/10.  That is so where
one operand at most is rounded, by less than half of a float's last digit; all else is left to the model, such
as ``n / 41 * 41``, which may be less than ``n``.  Sizes are taken to be less than 2**16, or 2**24 if whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from tvm import tirx

from ..not_taken import NotTaken
from .dims import Dim, compared, divided, expression, not_negative, product, same, simplified

_LARGEST = 2**24
"""More than a whole number that counts something."""
_FINEST = 4096
"""The largest denominator that is a power of two."""
_SIMPLE = 128
"""The largest term of another fraction: quotients near a whole number are then no nearer than floats are."""


@dataclass(frozen=True)
class Ratio:
    """``over / under`` of dimensions, the latter more than 0."""

    over: Dim
    under: Dim


Number: TypeAlias = Dim | Ratio


def of_float(value: float, bits: int = 24) -> Number:
    """The simplest fraction that rounds to a float.

    Parameters
    ----------
    bits : digits of the float's type, 24 for float32.
    """
    if not math.isfinite(value):
        raise NotTaken
    exact = Fraction(value)
    if abs(exact.numerator) < _LARGEST and exact.denominator <= _FINEST:
        return _number(exact.numerator, exact.denominator)
    simple = exact.limit_denominator(_SIMPLE)
    # An error of less than half of the distance to the next float, with room for the quotient of two.
    near = Fraction(1, 2 ** (bits + 1) + 8)
    if not 0 < abs(simple.numerator) <= _SIMPLE or abs(exact / simple - 1) >= near:
        raise NotTaken
    return _number(simple.numerator, simple.denominator)


def terms(number: Number) -> tuple[Dim, Dim]:
    """Returns the terms over and under the line."""
    return (number.over, number.under) if isinstance(number, Ratio) else (number, 1)


def added(left: Number, right: Number) -> Number:
    (a, b), (c, d) = terms(left), terms(right)
    if not (_is_exact(b) and _is_exact(d)) and not (same(b, 1) or same(d, 1)):
        raise NotTaken
    return _number(simplified(expression(a) * d + expression(c) * b), product([b, d]))


def subtracted(left: Number, right: Number) -> Number:
    over, under = terms(right)
    return added(left, _number(simplified(0 - expression(over)), under))


def multiplied(left: Number, right: Number) -> Number:
    (a, b), (c, d) = terms(left), terms(right)
    if not (_round_once(left, right) or _is_power(left) or _is_power(right)):
        raise NotTaken
    return _number(product([a, c]), product([b, d]))


def resized(extent: Dim, scale: Number) -> Dim:
    """``floor(extent * scale)``; what a quotient of sizes makes of its divisor is its dividend.

    A float may be a little less, by which a model's author would be one short of the size that is meant.
    """
    over, under = terms(scale)
    whole = _number(product([extent, over]), under)
    return whole if not isinstance(whole, Ratio) else floor(multiplied(extent, scale))


def quotient(left: Number, right: Number) -> Number:
    """``left / right``; the divisor must be more than 0."""
    (a, b), (c, d) = terms(left), terms(right)
    if isinstance(c, int) and c <= 0:
        raise NotTaken
    if compared(">=", c, 0) is not True or not (_round_once(left, right) or _is_power(right)):
        raise NotTaken
    return _number(product([a, d]), product([b, c]))


def _round_once(left: Number, right: Number) -> bool:
    """Whether both are floats as they are, or one of them and the other is a known number."""
    exact = [_is_exact(terms(number)[1]) for number in (left, right)]
    known = [all(isinstance(term, int) for term in terms(number)) for number in (left, right)]
    return any(exact) and all(one or other for one, other in zip(exact, known, strict=True))


def _is_exact(under: Dim) -> bool:
    """Whether quotients by it are floats: a power of two."""
    return isinstance(under, int) and under & (under - 1) == 0


def _is_power(number: Number) -> bool:
    """Whether it is a power of two, which moves no digit of a float."""
    over, under = terms(number)
    return isinstance(over, int) and over > 0 and _is_exact(over) and _is_exact(under)


def floor(number: Number) -> Dim:
    over, under = terms(number)
    if isinstance(under, int) and under == 1:
        return over
    return simplified(tirx.floordiv(expression(over), expression(under)))


def ceiling(number: Number) -> Dim:
    over, under = terms(number)
    if isinstance(under, int) and under == 1:
        return over
    return simplified(tirx.floordiv(expression(over) + expression(under) - 1, expression(under)))


def truncated(number: Number) -> Dim:
    """Towards zero, as a cast to an integer type; numbers below 0 are left to the model."""
    if not not_negative(terms(number)[0]):
        raise NotTaken
    return floor(number)


def _number(over: Dim, under: Dim) -> Number:
    """The quotient with factors left out that both have; a dimension where it is whole."""
    if isinstance(under, int) and under == 1:
        return over
    if isinstance(over, int) and isinstance(under, int):
        fraction = Fraction(over, under)
        over, under = fraction.numerator, fraction.denominator
        return over if under == 1 else Ratio(over, under)
    whole = divided(over, under)
    if not _has_division(whole) and same(product([whole, under]), over):
        return whole
    return Ratio(over, under)


def _has_division(dim: Dim) -> bool:
    return isinstance(dim, tirx.FloorDiv)
