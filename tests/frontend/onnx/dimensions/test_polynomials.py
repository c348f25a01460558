"""Dimensions as polynomials: they have the value that the expression has, and one form for one size."""

from __future__ import annotations

import random

import pytest
from tvm import tirx

from tvm_mxplan.frontend.onnx.dimensions.dims import floor_divided, not_negative, same, simplified
from tvm_mxplan.frontend.onnx.dimensions.polynomials import expression, polynomial, quotient

N, M = tirx.Var("n", "int64"), tirx.Var("m", "int64")
PADDED = N + 512 - N % 512
"""The next multiple of 512 above n, as exporters write it."""
BLOCKS = tirx.floordiv(N, 512) + 1
_KINDS = {
    tirx.Add: lambda a, b: a + b,
    tirx.Sub: lambda a, b: a - b,
    tirx.Mul: lambda a, b: a * b,
    tirx.FloorDiv: lambda a, b: a // b,
    tirx.FloorMod: lambda a, b: a % b,
    tirx.Min: min,
    tirx.Max: max,
}


def drawn(random_numbers: random.Random, depth: int) -> tirx.Expr:
    if depth == 0 or random_numbers.random() < 0.2:
        return random_numbers.choice([N, M, tirx.const(random_numbers.randint(-5, 9), "int64")])
    kind = random_numbers.choice(list(_KINDS))
    left = drawn(random_numbers, depth - 1)
    if kind in (tirx.FloorDiv, tirx.FloorMod):
        return kind(left, tirx.const(random_numbers.choice([-3, 1, 2, 5, 12]), "int64"))
    return kind(left, drawn(random_numbers, depth - 1))


def value(expr: tirx.Expr, numbers: dict[str, int]) -> int:
    if isinstance(expr, tirx.IntImm):
        return int(expr)
    if isinstance(expr, tirx.Var):
        return numbers[expr.name]
    return _KINDS[type(expr)](value(expr.a, numbers), value(expr.b, numbers))


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_keep_their_values(seed: int) -> None:
    numbers = random.Random(seed)
    for _ in range(40):
        expr = drawn(numbers, 4)
        terms = polynomial(expr)
        assert terms is not None
        for _ in range(5):
            given = {"n": numbers.randint(0, 40), "m": numbers.randint(0, 40)}
            assert value(expression(terms), given) == value(expr, given), str(expr)
        by = drawn(numbers, 2)
        if polynomial(by):
            assert quotient(polynomial(tirx.Mul(expr, by)), polynomial(by)) == terms


def test_a_quotient_that_is_none() -> None:
    n, m = polynomial(N), polynomial(M)
    assert quotient(polynomial(N * M + 1), n) is None
    assert quotient(polynomial(N * 3), polynomial(2)) is None
    assert quotient(n, frozenset()) is None
    assert quotient(m, m) == polynomial(1)


def test_one_of_very_many_terms() -> None:
    parts = [tirx.Var(f"v{at}", "int64") for at in range(60)]
    total = sum(parts[1:], parts[0])
    assert polynomial(total) is not None
    assert polynomial(total * total) is None


def test_what_is_no_polynomial() -> None:
    assert polynomial(tirx.Select(N < M, N, M)) is None
    assert polynomial(tirx.truncdiv(N, M)) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (PADDED, BLOCKS * 512),
        (M * PADDED * 64, M * 4 * BLOCKS * 512 * 16),
        (tirx.floordiv(tirx.floordiv(N, 3), 4), tirx.floordiv(N, 12)),
        (tirx.floordiv(N * 5 + 7, 2), N * 2 + tirx.floordiv(N + 1, 2) + 3),
        (tirx.min(N, M) + 1, 1 + tirx.min(M, N)),
        (tirx.floordiv((M + 1) * (N + 2), N + 2), M + 1),
    ],
)
def test_sizes_written_differently(left: tirx.Expr, right: tirx.Expr) -> None:
    assert same(simplified(left), simplified(right))
    assert not same(simplified(left), simplified(right + 1))


def test_quotients_of_padded_sizes() -> None:
    assert not_negative(simplified(PADDED - 512)), "n - n % 512"
    assert same(floor_divided(simplified(PADDED), 512), simplified(BLOCKS))
    assert same(floor_divided(12, 5), 2)
    assert not not_negative(simplified(N - M))
