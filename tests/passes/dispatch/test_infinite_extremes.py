"""Extremes that are compared with an infinity stay with TVM, which keeps rows of nothing but -inf."""

from __future__ import annotations

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
