"""Inner products of one sample by the runtime's own kernel, against float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from program_builder import Builder, call, check, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
KERNEL = "row_product"


def run(
    sample: tuple[int, ...], columns: int, layout: str = "", bias: bool = True, *post_ops: ir.PostOp
) -> str:
    """The implementation of an inner product that was held against numpy."""
    x, w = random(*sample), random(columns, *sample[1:]) / np.float32(np.prod(sample[1:]) ** 0.5)
    shift = random(columns, seed=1)
    b = Builder()
    src = b.input(sample) if not layout else b.reorder(b.input(sample), layout)
    dst = b.output((sample[0], columns))
    operands = {"bias": b.constant(shift)} if bias else {}
    b.step(ir.InnerProduct(), post_ops, src=src, weights=b.constant(w), dst=dst, **operands)
    y = x.reshape(len(x), -1).astype("float64") @ w.reshape(columns, -1).T.astype("float64")
    expected = y + shift if bias else y
    for post_op in post_ops:
        assert isinstance(post_op, ir.EltwisePostOp)
        expected = np.maximum(expected, 0) if post_op.algorithm == "relu" else np.tanh(expected)
    check(b.run(x), expected.astype("float32"), w[0].size)
    return library.describe(b.build()).steps[-1].implementation


@pytest.mark.parametrize("depth, columns", [(1, 1), (3, 7), (33, 5), (100, 67), (1024, 1000), (4097, 258)])
@pytest.mark.parametrize("bias", [False, True])
def test_shapes(depth: int, columns: int, bias: bool, threads: int) -> None:
    assert run((1, depth), columns, "", bias, RELU) == KERNEL
    assert run((1, depth), columns, "", bias) == KERNEL


@pytest.mark.parametrize("depth, columns", [(1, 1), (33, 5), (1024, 1000)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_matrix_products_of_one_row(depth: int, columns: int, transposed: bool, bias: bool) -> None:
    """Weights that stand transposed are read as they are, others are packed so."""
    x, shift = random(1, depth), random(1, columns, seed=1)
    w = random(depth, columns) / np.float32(depth**0.5)
    b = Builder()
    constant = b.constant(np.ascontiguousarray(w.T) if transposed else w)
    weights = b.view(constant, (depth, columns), "ba") if transposed else constant
    operands = {"bias": b.constant(shift)} if bias else {}
    src, dst = b.input((1, depth)), b.output((1, columns))
    b.step(ir.MatMul(), (RELU,), src=src, weights=weights, dst=dst, **operands)
    expected = np.maximum(x.astype("float64") @ w + (shift if bias else 0), 0)
    check(b.run(x), expected.astype("float32"), depth)
    assert library.describe(b.build()).steps[-1].implementation == KERNEL


@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b"])
def test_filters_follow_the_order_of_the_sample(layout: str) -> None:
    assert run((1, 32, 6, 5), 35, layout, True, RELU) == KERNEL


def test_what_it_does_not_take_goes_to_onednn() -> None:
    assert run((2, 64), 35) != KERNEL
    assert run((1, 64), 35, "", True, ir.EltwisePostOp("tanh", 0.0, 0.0)) != KERNEL


def test_a_nan_of_the_sample_reaches_every_result() -> None:
    b = Builder()
    dst = b.output((1, 6))
    b.step(ir.InnerProduct(), [RELU], src=b.input((1, 40)), weights=b.constant(random(6, 40)), dst=dst)
    x, y = random(1, 40), np.zeros((1, 6), "float32")
    x[0, 39] = np.nan
    call(b.module(), "region", x, y)
    assert np.isnan(y).all()


@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    """The same tests in a process whose oneDNN was told to use less."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    command += ["-k", "shapes or order"]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
