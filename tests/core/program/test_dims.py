"""Dimensions: numbers, symbols, and what shape inference makes of them."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.program.dims import (
    OPERATORS,
    Expr,
    Symbol,
    at_ones,
    evaluate,
    is_static,
    static_shape,
    symbols_of,
)

N, H = Symbol("n"), Symbol("h")


@pytest.mark.parametrize(
    ("operator", "value"), [("+", 4), ("-", -10), ("*", -21), ("//", -1), ("%", 4), ("max", 7), ("min", -3)]
)
def test_every_operator(operator, value) -> None:
    assert evaluate(Expr(operator, N, H), {"n": -3, "h": 7}) == value
    assert operator in OPERATORS


def test_expressions_nest() -> None:
    dim = Expr("*", Expr("+", N, 1), Expr("//", H, 2))
    assert evaluate(dim, {"n": 2, "h": 9}) == 12
    assert str(dim) == "((n + 1) * (h // 2))"
    assert str(Expr("max", N, 3)) == "max(n, 3)"
    assert symbols_of(dim) == {"n", "h"}
    assert symbols_of(Expr("-", N, 3)) == {"n"}
    assert symbols_of(5) == set()
    assert evaluate(5, {}) == 5


def test_shapes_of_numbers() -> None:
    assert is_static((1, 2)) and is_static(())
    assert not is_static((1, N)) and not is_static((Expr("+", N, 1), 2))
    assert static_shape((1, 2)) == (1, 2)
    with pytest.raises(ValueError, match=r"shape \(1, n\) has symbolic dimensions"):
        static_shape((1, N))


def test_shapes_with_1_for_every_symbol():
    merged = Expr("*", Expr("*", N, 196), H)
    window = Expr("+", Expr("//", Expr("-", N, 7), 4), 1)
    apart = Expr("//", 12, Expr("-", N, H))
    assert at_ones((N, merged, 3, window, apart)) == [1, 196, 3, 1, 1]
