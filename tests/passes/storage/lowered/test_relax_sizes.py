"""Bytes of Relax's allocations: numbers, numbers times expressions, and what cannot be known."""

from __future__ import annotations

import pytest
import tvm
from relax_programs import parse
from tvm import tirx

from tvm_mxplan.passes.storage.relax_sizes import Bounds, Size

N, M = (tirx.Var(name, "int64") for name in "nm")


def dim(value: object) -> tvm.ir.Expr:
    return tirx.IntImm("int64", value) if isinstance(value, int) else value  # type: ignore[return-value]


def size(shape: tuple, dtype: str = "float32", upper: dict | None = None) -> Size | None:
    return Bounds([N, M], upper or {}).size_of([dim(extent) for extent in shape], dtype)


def at(found: Size | None, **numbers: int) -> int:
    """The bytes at some numbers of the variables."""
    assert found is not None
    if found.unit is None:
        return found.nbytes
    return found.nbytes * number(found.unit, **numbers)


def number(expr: tvm.ir.Expr, **numbers: int) -> int:
    """An expression at some numbers of the variables."""
    analyzer = tvm.sym.Analyzer()
    for var in (N, M):
        analyzer.bind(var, dim(numbers[var.name]))
    return int(analyzer.simplify(expr))


@pytest.mark.parametrize(
    ("shape", "dtype", "nbytes"),
    [
        ((3, 5), "float32", 60),
        ((), "float64", 8),
        ((7,), "bool", 7),
        ((3,), "float16", 6),
        ((5,), "int4", 5),
        ((2, 0, 3), "float32", 0),
        ((2,), "float32x4", 32),
    ],
)
def test_numbers(shape, dtype, nbytes) -> None:
    """An element takes whole bytes."""
    assert size(shape, dtype) == Size(nbytes)


def test_expressions_have_their_numbers_in_front() -> None:
    found = size((N, 5))
    assert found is not None and found.nbytes == 20 and found.unit is not None
    for shape in ((N, 5), (N * 6, 5), (N, M, 3), (N + 1, 4), (3 * N, 2 * M)):
        for n, m in ((1, 1), (7, 3)):
            expected = 4
            for extent in shape:
                expected *= number(dim(extent), n=n, m=m)
            assert at(size(shape), n=n, m=m) == expected
    factor = size((N * 6, 5))
    assert factor is not None and factor.nbytes == 120


def test_upper_bounds_make_numbers_and_are_told() -> None:
    assert size((N, 5), upper={N: 8}) == Size(160, None, ((N, 8),))
    found = size((N, M, N), upper={N: 8, M: 3})
    assert found is not None
    assert (found.nbytes, {var.name: bound for var, bound in found.bounded}) == (
        4 * 8 * 3 * 8,
        {"n": 8, "m": 3},
    )
    assert size((N + 2,), upper={N: 8}) == Size(40, None, ((N, 8),))
    assert size((8 - N,), upper={N: 8}) == Size(32, None, ((N, 8),))
    only_one = size((N, M), upper={N: 8})
    assert only_one is not None and only_one.unit is not None and only_one.bounded == ()


def test_what_is_bound_inside_the_function_is_not_known() -> None:
    other = tirx.Var("k", "int64")
    assert size((other,)) is None
    assert size((N, other)) is None
    assert size((N * other,), upper={N: 8}) is None


def test_more_than_any_machine_has_is_unknown() -> None:
    assert size((2**20, 2**25)) is not None
    assert size((2**21, 2**26)) is None
    assert size((N, 5), upper={N: 2**62}) is None


def test_variables_and_bounds_of_a_function() -> None:
    parameters = 'x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", "m"), "float32"), s: R.Shape(["k"])'
    function = parse("return x", parameters, '{"tir_var_upper_bound": {"n": 8, "k": 5, "q": 2}}')["main"]
    bounds = Bounds.of(function)
    assert sorted(var.name for var in bounds.variables) == ["k", "m", "n"]
    assert {var.name: upper for var, upper in bounds.upper.items()} == {"n": 8, "k": 5}
    plain = Bounds.of(parse("return x", parameters)["main"])
    assert plain.upper == {}
    assert Bounds.of(parse("return x", 'x: R.Tensor((2, 3), "float32")')["main"]).variables == []
