"""Dimensions as polynomials with whole coefficients: sizes that are written differently and are the same.

``s + 512 - s % 512`` and ``(s // 512 + 1) * 512`` have one polynomial, over ``s // 512``: a remainder is what
a floor division leaves, and floor divisions by numbers keep only what is not divided by them anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tvm import tirx

Monomial = tuple[tuple["Factor", int], ...]
"""Factors with their powers, in the order of their texts."""
Polynomial = frozenset[tuple[Monomial, int]]
"""Monomials with coefficients other than 0."""
NOTHING: Polynomial = frozenset()
_MOST = 400
"""Products of as many terms; sizes have a handful."""


@dataclass(frozen=True)
class Factor:
    """A variable, or a function of polynomials that is none itself."""

    kind: str
    parts: tuple[Any, ...]
    text: str


def polynomial(dim: int | tirx.Expr) -> Polynomial | None:
    """The polynomial of a dimension; None for other than sums, products, floors, remainders and extrema.

    Also for one of more terms than sizes have.
    """
    if isinstance(dim, int | tirx.IntImm):
        return _number(int(dim))
    if isinstance(dim, tirx.Var):
        return _of(Factor("variable", (dim,), f"{dim.name}@{hash(dim)}"))
    rule = next((rule for kind, rule in _RULES.items() if isinstance(dim, kind)), None)
    if rule is None:
        return None
    left, right = polynomial(dim.a), polynomial(dim.b)
    if left is None or right is None or len(left) * len(right) > _MOST:
        return None
    return rule(left, right)


def expression(terms: Polynomial) -> tirx.Expr:
    """The expression of type int64 that a polynomial stands for."""
    found = [_term(monomial, number) for monomial, number in sorted(terms, key=_text)]
    return reduce(lambda a, b: a + b, found) if found else tirx.const(0, "int64")


def quotient(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """The polynomial that gives ``left`` when it is multiplied by ``right``; None where there is none."""
    if not right:
        return None
    lead, by = max(right, key=_rank)
    found = NOTHING
    while left:
        monomial, number = max(left, key=_rank)
        rest = _without(monomial, lead)
        if rest is None or number % by:
            return None
        part = frozenset({(rest, number // by)})
        found, left = _sum(found, part), _sum(left, _times(part, right), -1)
    return found


def _number(number: int) -> Polynomial:
    return frozenset({((), number)} if number else ())


def _of(factor: Factor) -> Polynomial:
    return frozenset({(((factor, 1),), 1)})


def _sum(left: Polynomial, right: Polynomial, times: int = 1) -> Polynomial:
    return _collected([*left, *((monomial, times * number) for monomial, number in right)])


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    return _collected((_joined(a, b), m * n) for a, m in left for b, n in right)


def _collected(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    found: dict[Monomial, int] = {}
    for monomial, number in terms:
        found[monomial] = found.get(monomial, 0) + number
    return frozenset((monomial, number) for monomial, number in found.items() if number)


def _joined(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].text))


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    powers = dict(monomial)
    for factor, power in divisor:
        powers[factor] = powers.get(factor, 0) - power
    if any(power < 0 for power in powers.values()):
        return None
    return tuple((factor, power) for factor, power in powers.items() if power)


def _rank(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    """An order of monomials that products keep: by degree, then the fewer of the first factors the larger."""
    texts = [factor.text for factor, power in term[0] for _ in range(power)]
    return len(texts), texts


def _floor(left: Polynomial, right: Polynomial) -> Polynomial:
    """The quotient rounded down, of any sign."""
    exact = quotient(left, right)
    if exact is not None:
        return exact
    if {monomial for monomial, _ in right} != {()}:
        return _of(_function("//", left, right))
    by = dict(right)[()]
    if by < 0:
        left, by = _times(left, _number(-1)), -by
    whole = _collected((monomial, number // by) for monomial, number in left)
    rest = {monomial: number % by for monomial, number in left if number % by}
    common = math.gcd(by, *(number for monomial, number in rest.items() if monomial))
    below = _collected((monomial, number // common) for monomial, number in rest.items())
    return _sum(whole, _below(below, by // common))


def _below(terms: Polynomial, by: int) -> Polynomial:
    """The floor of a quotient whose coefficients are below the divisor; floors of floors are one."""
    if all(not monomial for monomial, _ in terms):
        return NOTHING
    if len(terms) == 1:
        ((monomial, number),) = terms
        ((factor, power), *more) = monomial
        inner = dict(factor.parts[1]) if factor.kind == "//" else {}
        if number == power == 1 and not more and set(inner) == {()} and inner[()] > 0:
            return _of(_function("//", factor.parts[0], _number(inner[()] * by)))
    return _of(_function("//", terms, _number(by)))


def _function(kind: str, *parts: Polynomial) -> Factor:
    texts = [" + ".join(sorted(map(_text, part))) for part in parts]
    if kind != "//":
        parts, texts = tuple(sorted(parts, key=lambda part: texts[parts.index(part)])), sorted(texts)
    return Factor(kind, parts, f"({f' {kind} '.join(texts)})")


def _text(term: tuple[Monomial, int]) -> str:
    monomial, number = term
    return " * ".join([*(f"{factor.text}^{power}" for factor, power in monomial), str(number)])


def _extreme(kind: str) -> Callable[[Polynomial, Polynomial], Polynomial]:
    def rule(left: Polynomial, right: Polynomial) -> Polynomial:
        apart = dict(_sum(left, right, -1))
        if set(apart) <= {()}:  # by a number
            return left if (apart.get((), 0) > 0) == (kind == "max") else right
        return _of(_function(kind, left, right))

    return rule


_RULES: dict[type, Callable[[Polynomial, Polynomial], Polynomial]] = {
    tirx.Add: _sum,
    tirx.Sub: lambda left, right: _sum(left, right, -1),
    tirx.Mul: _times,
    tirx.FloorDiv: _floor,
    tirx.FloorMod: lambda left, right: _sum(left, _times(right, _floor(left, right)), -1),
    tirx.Min: _extreme("min"),
    tirx.Max: _extreme("max"),
}
_BACK = {"//": tirx.floordiv, "min": tirx.min, "max": tirx.max}


def _term(monomial: Monomial, number: int) -> tirx.Expr:
    factors = [_factor(factor) for factor, power in monomial for _ in range(power)]
    if not factors:
        return tirx.const(number, "int64")
    product = reduce(lambda a, b: a * b, factors)
    return product if number == 1 else product * tirx.const(number, "int64")


def _factor(factor: Factor) -> tirx.Expr:
    if factor.kind == "variable":
        return factor.parts[0]
    return _BACK[factor.kind](*map(expression, factor.parts))
