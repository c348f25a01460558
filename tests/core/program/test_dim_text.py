"""Dimensions from text: what ``str`` of them writes comes back."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.program.dim_text import dim_from_text
from tvm_mxplan.core.program.dims import OPERATORS, Expr, Symbol, evaluate

N, M = Symbol("n"), Symbol("m_1")


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_written_comes_back(operator):
    for dim in (Expr(operator, N, 3), Expr(operator, Expr("-", M, N), Expr(operator, N, M))):
        assert dim_from_text(str(dim)) == dim


def test_people_write_without_brackets():
    dim = dim_from_text(" n + m_1 * 2 - 7 // 2")
    assert dim is not None
    assert evaluate(dim, {"n": 10, "m_1": 4}) == 15
    assert dim_from_text("n") == N
    assert dim_from_text("12") == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n +",
        "n / 2",
        "2 ** n",
        "f(n)",
        "n + f(n)",
        "n - 1.5",
        "max(n, m / 2)",
        "max(n)",
        "max(n, m, k)",
        "n.a",
        "n[0]",
        "'n'",
        "1.5",
        "True",
        "n" * 1001,
    ],
)
def test_other_text_is_none(text):
    assert dim_from_text(text) is None


def test_deep_text_is_none():
    assert dim_from_text("(" * 400 + "n" + ")" * 400) is None


def test_the_longest_text_that_is_read():
    assert dim_from_text("n" * 1000) == Symbol("n" * 1000)
