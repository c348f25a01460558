"""Functions that TVM's kernels would lose digits of."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.kernels import ExactFunctions

NUMBERS = np.r_[-85:85:1701j, -1e4, 1e4, np.inf, -np.inf, np.nan, -0.0]


def module(*makers: Callable[[relax.Expr], relax.Expr], dtype: str = "float32") -> tvm.IRModule:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(NUMBERS.shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            y: relax.Expr = x
            for make in makers:
                y = builder.emit(make(y))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    return builder.get()


def answer(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    return tvm_mxplan.compile(mod, "llvm", options={"cache": "disabled"}).run([x])[0]


@pytest.mark.parametrize("beta", [1.0, 0.5])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-12)])
def test_softplus(dtype: str, tolerance: float, beta: float) -> None:
    x = NUMBERS.astype(dtype)
    found = answer(module(lambda x: relax.op.nn.softplus(x, beta, 40.0), dtype=dtype), x)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(0, beta * x.astype("float64")) / beta
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-37)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_sign_of_no_number_is_none(dtype: str) -> None:
    x = NUMBERS.astype(dtype)
    np.testing.assert_array_equal(answer(module(relax.op.sign, dtype=dtype), x), np.sign(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_casts_to_bfloat16_round_in_any_kernel(dtype: str) -> None:
    x = (NUMBERS * 1.2345).astype(dtype)
    doubled = module(
        lambda x: relax.op.astype(x, "bfloat16"),
        lambda x: relax.op.astype(x, "float32"),
        lambda x: relax.op.multiply(x, relax.const(2.0, "float32")),
        dtype=dtype,
    )
    expected = x.astype("float32").astype(ml_dtypes.bfloat16).astype("float32") * 2
    np.testing.assert_array_equal(answer(doubled, x), expected)


@pytest.mark.parametrize("to", ["float16", "float64", "int32"])
def test_other_casts_stay(to: str) -> None:
    before = module(lambda x: relax.op.astype(x, to))
    tvm.ir.assert_structural_equal(ExactFunctions()(before), before)
