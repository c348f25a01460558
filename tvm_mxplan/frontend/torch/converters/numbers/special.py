"""Functions of statistics and physics: kernels written out.

Series are added up in float64 and rounded once, so that float32 has all its digits.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable

import numpy as np
from tvm import relax, te, tirx

from ...node import Emitter, Node
from ..table import converts

_INNER = "float64"
_STEPS = 12
"""Terms that stand in front of a series, which so starts far from 0."""
_WINITZKI = 0.147


def _real(number: float) -> tirx.Expr:
    return tirx.const(number, _INNER)


def _c(function: str, *numbers: tirx.Expr) -> tirx.Expr:
    return tirx.call_pure_extern(_INNER, function, *numbers)


def _let(value: tirx.Expr, body: Callable[[tirx.Expr], tirx.Expr]) -> tirx.Expr:
    """An expression that reads a value several times, which is computed once."""
    name = tirx.Var("number", _INNER)
    return tirx.Let(name, value, body(name))


def _by_formula(
    emitter: Emitter, node: Node, name: str, formula: Callable[[tirx.Expr], tirx.Expr]
) -> relax.Expr:
    dtype = node.result.dtype
    source = emitter.cast(node["self"], dtype)

    def kernel(tensor: te.Tensor) -> te.Tensor:
        return te.compute(
            tensor.shape,
            lambda *at: _let(tensor(*at).astype(_INNER), formula).astype(dtype),
            f"special_{name}",
        )

    return emitter.builder.emit_te(kernel, source, primfunc_name_hint=f"special_{name}")


def _polynomial(x: tirx.Expr, coefficients: list[float]) -> tirx.Expr:
    """The sum of coefficients times powers, the constant first."""
    total = _real(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + _real(coefficient)
    return total


def _bessel(order: int, scaled: bool) -> Callable[[tirx.Expr], tirx.Expr]:
    """The modified Bessel function of the first kind: its power series, and far out its asymptotic one."""
    border, terms = 16.0, 64
    series = [1 / (math.factorial(k) * math.factorial(k + order) * 4.0**k) for k in range(terms)]
    tail, factor = [], 1.0
    for k in range(28):
        tail.append(factor)
        factor *= ((2 * k + 1) ** 2 - 4 * order**2) / (8 * (k + 1))

    def formula(x: tirx.Expr) -> tirx.Expr:
        size = tirx.abs(x)
        near = tirx.min(size, _real(border))
        low = _let(near * near, lambda square: _polynomial(square, series))
        low = low * near * 0.5 if order else low
        far = tirx.max(size, _real(border))
        high = _let(1.0 / far, lambda inverse: _polynomial(inverse, tail)) / tirx.sqrt(far * (2 * math.pi))
        low = low * tirx.exp(-near) if scaled else low
        high = high if scaled else high * tirx.exp(far)
        found = tirx.Select(size <= border, low, high)
        found = tirx.Select(tirx.And(x < 0, order == 1), -found, found) if order else found
        return tirx.Select(tirx.isnan(x), x, found)

    return formula


def _digamma(x: tirx.Expr) -> tirx.Expr:
    """The derivative of the logarithm of the gamma function, by reflection, recurrence and its series."""
    reflected, bernoulli = x < 0, [1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12]

    def above(y: tirx.Expr) -> tirx.Expr:
        near = functools.reduce(operator.add, [1.0 / (y + float(k)) for k in range(_STEPS)])
        far = _let(y + float(_STEPS), lambda z: _c("log", z) - 0.5 / z - series(1.0 / (z * z)))
        return far - near

    def series(square: tirx.Expr) -> tirx.Expr:
        return _let(square, lambda w: w * _polynomial(w, bernoulli))

    rest = x - tirx.floor(x)
    turned = _let(rest * math.pi, lambda turn: math.pi * _c("cos", turn) / _c("sin", turn))
    turned = tirx.Select(rest.equal(0.0), _real(math.nan), turned)
    found = _let(tirx.Select(reflected, 1.0 - x, x), above) - tirx.Select(reflected, turned, _real(0.0))
    zero = tirx.Select(1.0 / x < 0, _real(math.inf), _real(-math.inf))
    return tirx.Select(x.equal(0.0), zero, found)


def _zeta(s: int, q: tirx.Expr) -> tirx.Expr:
    """The sum of ``(q + k) ** -s`` over all whole ``k`` from 0, for ``q`` above 0, by Euler and Maclaurin."""
    total = _real(0.0)
    for k in range(_STEPS):
        total = total + _c("pow", q + float(k), _real(-float(s)))
    a = q + float(_STEPS)
    total = total + _c("pow", a, _real(1.0 - s)) / float(s - 1) + _c("pow", a, _real(-float(s))) * 0.5
    rising = float(s)
    for k, number in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6), 1):
        total = total + _c("pow", a, _real(1.0 - s - 2 * k)) * (number / math.factorial(2 * k) * rising)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return total


def _trigamma(x: tirx.Expr) -> tirx.Expr:
    reflected = x < 0.5
    found = _zeta(2, tirx.Select(reflected, 1.0 - x, x))
    sine = _c("sin", math.pi * x)
    return tirx.Select(reflected, math.pi**2 / (sine * sine) - found, found)


def _inverse_error_function(x: tirx.Expr) -> tirx.Expr:
    """A first guess by Winitzki, made exact by Halley's steps on erf, far out on its complement."""
    size = tirx.abs(x)
    half = 2 / (math.pi * _WINITZKI)

    def guess(rest: tirx.Expr) -> tirx.Expr:
        middle = half + rest * 0.5
        inner = tirx.sqrt(middle * middle - rest / _WINITZKI) - middle
        return tirx.sqrt(tirx.max(inner, _real(0.0)))

    def better(y: tirx.Expr) -> tirx.Expr:
        error = tirx.Select(size > 0.5, (1.0 - size) - _c("erfc", y), _c("erf", y) - size)
        slope = error / (2 / math.sqrt(math.pi) * tirx.exp(-y * y))
        return _let(slope, lambda step: y - step / (1.0 + y * step))

    y = _let(tirx.log((1.0 - size) * (1.0 + size)), guess)
    for _ in range(3):
        y = _let(y, better)
    found = tirx.Select(size.equal(1.0), _real(math.inf), tirx.Select(size > 1.0, _real(math.nan), y))
    return tirx.Select(x < 0, -found, tirx.Select(x.equal(0.0), x, found))


def _scaled_complement(x: tirx.Expr) -> tirx.Expr:
    """``exp(x * x) * erfc(x)``; far out by the series of its quotient."""
    near = tirx.min(x, _real(8.0))
    direct = tirx.exp(near * near) * _c("erfc", near)
    far = tirx.max(x, _real(8.0))
    coefficients, factor = [], 1.0
    for k in range(18):
        coefficients.append(factor)
        factor *= -(2 * k + 1) / 2
    series = _let(1.0 / (far * far), lambda square: _polynomial(square, coefficients))
    asymptotic = series / (far * math.sqrt(math.pi))
    return tirx.Select(x <= 8.0, direct, tirx.Select(tirx.isnan(x), x, asymptotic))


_FORMULAS: dict[str, Callable[[tirx.Expr], tirx.Expr]] = {
    "digamma": _digamma,
    "erfinv": _inverse_error_function,
    "i0": _bessel(0, scaled=False),
    "lgamma": lambda x: _c("lgamma", x),
    "special_bessel_j0": lambda x: _c("j0", x),
    "special_bessel_j1": lambda x: _c("j1", x),
    "special_bessel_y0": lambda x: _c("y0", x),
    "special_bessel_y1": lambda x: _c("y1", x),
    "special_erfcx": _scaled_complement,
    "special_i0e": _bessel(0, scaled=True),
    "special_i1": _bessel(1, scaled=False),
    "special_i1e": _bessel(1, scaled=True),
    "special_modified_bessel_i0": _bessel(0, scaled=False),
    "special_modified_bessel_i1": _bessel(1, scaled=False),
}


@converts(*(f"{name}.default" for name in _FORMULAS))
def _special(emitter: Emitter, node: Node) -> relax.Expr:
    name = node.operator.split(".")[1]
    return _by_formula(emitter, node, name, _FORMULAS[name])


def _cotangent_derivative(order: int) -> list[float]:
    """The derivative of ``pi * cot(pi * x)``, as the coefficients of powers of that cotangent."""
    powers = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        powers = -np.polynomial.Polynomial([1.0, 0.0, 1.0]) * powers.deriv()
    return [float(one) * math.pi ** (order + 1) for one in powers.coef]


@converts("polygamma.default")
def _derivative_of_digamma(emitter: Emitter, node: Node) -> relax.Expr:
    order = node["n"]
    if order == 0:
        return _by_formula(emitter, node, "digamma", _digamma)
    if order == 1:
        return _by_formula(emitter, node, "trigamma", _trigamma)
    sign = (-1.0) ** (order + 1)
    factor = math.factorial(order) * sign
    turned = _cotangent_derivative(order)

    def formula(x: tirx.Expr) -> tirx.Expr:
        reflected, rest = x < 0.5, x - tirx.floor(x)
        found = _zeta(order + 1, tirx.Select(reflected, 1.0 - x, x)) * factor
        turn = tirx.Select(rest.equal(0.0), _real(0.5), rest) * math.pi
        cotangent = _c("cos", turn) / _c("sin", turn)
        other = -sign * found - _let(cotangent, lambda c: _polynomial(c, turned))
        pole = tirx.And(reflected, rest.equal(0.0))
        return tirx.Select(pole, _real(sign * math.inf), tirx.Select(reflected, other, found))

    return _by_formula(emitter, node, "polygamma", formula)
