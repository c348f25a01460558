"""Rows by the matrix of their group: what becomes a step and what stays with TVM; both compute the same."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from composites import tensor, typed
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.byoc.onednn.families import experts
from tvm_mxplan.operators.products.grouped_product import grouped_product
from tvm_mxplan.report.inspection import decoded_programs

GROUPS, DEPTH, COLUMNS = 4, 24, 36
RANDOM = np.random.default_rng(0)
MATRICES = RANDOM.standard_normal((GROUPS, DEPTH, COLUMNS), "float32")


def kinds_of(ex: tvm_mxplan.Executable) -> list[str]:
    return [step.kind for program in decoded_programs(ex.module) for step in program.steps]


def module(rows: int | str, constant: bool, behind: bool = False) -> tvm.IRModule:
    extent = tirx.Var(rows, "int64") if isinstance(rows, str) else rows
    x, ends = tensor("x", extent, DEPTH), tensor("ends", GROUPS, dtype="int32")
    matrices = tensor("w", GROUPS, DEPTH, COLUMNS)
    builder = relax.BlockBuilder()
    with builder.function("main", [x, ends] if constant else [x, ends, matrices]):
        with builder.dataflow():
            y = builder.emit(grouped_product(x, relax.const(MATRICES) if constant else matrices, ends))
            if behind:
                y = builder.emit(relax.op.nn.silu(y))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    return builder.get()


def expected(x: np.ndarray, ends: np.ndarray) -> np.ndarray:
    groups = np.searchsorted(ends, np.arange(len(x)), side="right")
    padded = np.concatenate([MATRICES, np.zeros((1, DEPTH, COLUMNS), "float32")])
    return np.einsum("mk,mkn->mn", x.astype("float64"), padded[groups])


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("target", ["dnnl, host, llvm", "llvm"])
def test_sorted_rows_of_experts(target: str, behind: bool) -> None:
    ex = tvm_mxplan.compile(module(10, True, behind), target)
    assert kinds_of(ex) == (["grouped_product"] if target != "llvm" else [])
    x, ends = RANDOM.standard_normal((10, DEPTH), "float32"), np.array([3, 3, 7, 9], "int32")
    value = expected(x, ends)
    if behind:
        value = value / (1 + np.exp(-value))
    np.testing.assert_allclose(ex(x, ends)[0].numpy(), value, rtol=1e-5, atol=1e-5)


def test_any_number_of_rows() -> None:
    ex = tvm_mxplan.compile(module("n", True))
    assert kinds_of(ex) == ["grouped_product"]
    for rows, ends in ((1, [0, 1, 1, 1]), (7, [1, 2, 3, 7]), (300, [50, 200, 201, 300])):
        x, numbers = RANDOM.standard_normal((rows, DEPTH), "float32"), np.array(ends, "int32")
        np.testing.assert_allclose(ex(x, numbers)[0].numpy(), expected(x, numbers), rtol=1e-5, atol=1e-5)


def test_all_multiply_adds_are_counted_once() -> None:
    report = tvm_mxplan.compile(module(10, True)).report
    assert report.multiply_adds == 10 * DEPTH * COLUMNS and report.offloaded == 1.0


def test_matrices_that_come_with_a_call_stay_with_tvm() -> None:
    ex = tvm_mxplan.compile(module(10, False))
    assert not kinds_of(ex) and "no constant, which could not be packed" in str(ex.report)
    x, ends = RANDOM.standard_normal((10, DEPTH), "float32"), np.array([0, 4, 4, 10], "int32")
    np.testing.assert_allclose(ex(x, ends, MATRICES)[0].numpy(), expected(x, ends), rtol=1e-5, atol=1e-5)


def test_rows_in_other_types_are_refused() -> None:
    x, ends = tensor("x", 5, DEPTH, dtype="float16"), tensor("ends", GROUPS, dtype="int32")
    call = typed(grouped_product(x, relax.const(MATRICES.astype("float16")), ends))
    assert experts.check({"root": call}) == "rows of float16, expected float32"
