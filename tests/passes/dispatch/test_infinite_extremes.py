"""Extremes that are compared with an infinity stay with TVM, which keeps rows of nothing but -inf."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.dispatch.infinite_extremes import infinite_extremes
from tvm_mxplan.passes.region.name_operators import NameOperators

LEAST = np.float32(-np.inf)


def module(kind: str, bound: np.float32 | None, viewed: bool) -> tvm.IRModule:
    """Rows whose extreme is the bound (or that is infinite, without one), and sums of exponentials of all."""
    x = relax.Var("x", relax.TensorType([6, 33], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            found = builder.emit(getattr(relax.op, kind)(x, [1], keepdims=viewed))
            found = builder.emit(relax.op.squeeze(found, [1])) if viewed else found
            if bound is None:
                asked = builder.emit(relax.op.isinf(found))
            else:
                asked = builder.emit(relax.op.equal(relax.const(bound), found))
            other = builder.emit(relax.op.max(relax.op.exp(x), [1]))
            result = builder.emit_output(relax.Tuple([asked, other]))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize(
    ("kind", "bound", "found"),
    [
        ("max", LEAST, {"max_0"}),
        ("min", -LEAST, {"min_0"}),
        ("max", None, {"max_0"}),
        ("max", np.float32(3), set()),
        ("sum", LEAST, set()),
    ],
)
def test_extremes_that_are_compared_with_an_infinity_are_found(
    kind: str, bound: np.float32 | None, found: set[str], viewed: bool
) -> None:
    assert infinite_extremes(NameOperators()(module(kind, bound, viewed))) == found


def test_rows_of_nothing_but_infinity_are_seen_as_such() -> None:
    executable = tvm_mxplan.compile(module("max", LEAST, True), options={"cache": "disabled"})
    assert executable.report.regions, "the other reduction is offloaded"
    x = np.random.default_rng(0).standard_normal((6, 33)).astype("float32")
    x[1], x[4], x[5, :32] = -np.inf, -np.inf, -np.inf
    asked, other = executable(x)
    np.testing.assert_array_equal(asked.numpy(), [False, True, False, False, True, False])
    np.testing.assert_allclose(other.numpy(), np.exp(x).max(1), rtol=1e-6)


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
VIEWS = {
    "reshape": lambda x: relax.op.reshape(x, (2, 3, 1)),
    "squeeze": lambda x: relax.op.squeeze(x, [1]),
    "expand_dims": lambda x: relax.op.expand_dims(x, 0),
    "permute_dims": relax.op.permute_dims,
    "broadcast_to": lambda x: relax.op.broadcast_to(x, (6, 5)),
    "astype": lambda x: relax.op.astype(x, "float64"),
    "flatten": relax.op.flatten,
    "two of them": lambda x: relax.op.expand_dims(relax.op.reshape(x, (6,)), 1),
}


def found(ask: Callable[[relax.BlockBuilder, relax.Var], relax.Expr], reduce: str = "max") -> set[str]:
    """Names of the extremes that ``ask`` asks whether they are infinite."""
    x = relax.Var("x", relax.TensorType([6, 33], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            extreme = builder.emit(getattr(relax.op, reduce)(x, [1], keepdims=True))
            result = builder.emit_output(ask(builder, extreme))
        builder.emit_func_output(result)
    return infinite_extremes(NameOperators()(relax.transform.Normalize()(builder.get())))


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("bound", [np.inf, -np.inf, 1e38, 0.0])
def test_every_comparison_asks_on_either_side(comparison: str, bound: float) -> None:
    compare, number = getattr(relax.op, comparison), relax.const(np.float32(bound))
    expected = {"max_0"} if np.isinf(bound) else set()
    assert found(lambda _, extreme: compare(extreme, number)) == expected
    assert found(lambda _, extreme: compare(number, extreme)) == expected


@pytest.mark.parametrize("ask", ["isinf", "isfinite"])
@pytest.mark.parametrize("reduce", ["max", "min"])
def test_tests_for_infinity_ask(ask: str, reduce: str) -> None:
    assert found(lambda _, extreme: getattr(relax.op, ask)(extreme), reduce) == {f"{reduce}_0"}


def test_other_questions_are_none() -> None:
    infinite = relax.const(LEAST)
    for other in (relax.op.add, relax.op.maximum, relax.op.multiply):
        assert found(lambda _, extreme, other=other: other(extreme, infinite)) == set()
    assert found(lambda _, extreme: relax.op.isnan(extreme)) == set()


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_looked_through(view: str) -> None:
    assert found(lambda builder, extreme: relax.op.isinf(builder.emit(VIEWS[view](extreme)))) == {"max_0"}


def test_what_computes_is_not_looked_through() -> None:
    assert found(lambda builder, extreme: relax.op.isinf(builder.emit(relax.op.exp(extreme)))) == set()


def test_an_infinity_may_have_a_name() -> None:
    def ask(builder: relax.BlockBuilder, extreme: relax.Var) -> relax.Expr:
        return relax.op.equal(extreme, builder.emit(relax.const(LEAST)))

    assert found(ask) == {"max_0"}
