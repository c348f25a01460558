"""Exact arithmetic on quotients of dimensions: what a model computes in floating point on its way to a size.

    scale = Cast(Shape(y)[2]) / Cast(Shape(x)[2])      (2 * h) / h      2
    half = Floor(Cast(h) * 0.5)                        h / 2            h // 2

A float is the fraction that it stands for.  Rounding of intermediate results in floating point is left out,
so a size is the one that the model's author meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tvm import tirx

from ..not_taken import NotTaken
from .dims import Dim, compared, divided, expression, not_negative, product, same, simplified

_LARGEST = 2**31
"""More than a factor that is exact and no accident: an odd float as a fraction has larger terms."""


@dataclass(frozen=True)
class Ratio:
    """``over / under`` of dimensions, the latter more than 0."""

    over: Dim
    under: Dim


Number = Dim | Ratio


def of_float(value: float) -> Number:
    """The fraction that a float is."""
    if value != value or value in (float("inf"), float("-inf")):
        raise NotTaken
    fraction = Fraction(value)
    if abs(fraction.numerator) >= _LARGEST or fraction.denominator >= _LARGEST:
        raise NotTaken
    return _number(fraction.numerator, fraction.denominator)


def terms(number: Number) -> tuple[Dim, Dim]:
    """Returns the terms over and under the line."""
    return (number.over, number.under) if isinstance(number, Ratio) else (number, 1)


def added(left: Number, right: Number) -> Number:
    (a, b), (c, d) = terms(left), terms(right)
    return _number(simplified(expression(a) * d + expression(c) * b), product([b, d]))


def subtracted(left: Number, right: Number) -> Number:
    over, under = terms(right)
    return added(left, _number(simplified(0 - expression(over)), under))


def multiplied(left: Number, right: Number) -> Number:
    (a, b), (c, d) = terms(left), terms(right)
    return _number(product([a, c]), product([b, d]))


def quotient(left: Number, right: Number) -> Number:
    """``left / right``; the divisor must be more than 0."""
    (a, b), (c, d) = terms(left), terms(right)
    if isinstance(c, int) and c <= 0:
        raise NotTaken
    if compared(">=", c, 0) is not True:
        raise NotTaken
    return _number(product([a, d]), product([b, c]))


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
        whole = fraction.denominator == 1
        return fraction.numerator if whole else Ratio(fraction.numerator, fraction.denominator)
    whole = divided(over, under)
    if not _has_division(whole) and same(product([whole, under]), over):
        return whole
    return Ratio(over, under)


def _has_division(dim: Dim) -> bool:
    return isinstance(dim, tirx.FloorDiv)
