"""Rows by the matrix of their group, by the runtime's own kernels, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Builder, check, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir


def exact(x: np.ndarray, matrices: np.ndarray, ends: list[int]) -> np.ndarray:
    """Group by group, each from where the ones before end; 0 behind the last."""
    found, begin = np.zeros((len(x), matrices.shape[2])), 0
    for matrix, end in zip(matrices.astype("float64"), ends, strict=True):
        end = min(max(begin, end), len(x))
        found[begin:end] = x[begin:end] @ matrix
        begin = end
    return found


def run(rows: int, depth: int, columns: int, ends: list[int], *functions: str) -> None:
    x, matrices = random(rows, depth), random(len(ends), depth, columns, seed=1)
    b = Builder()
    src, dst = b.input(x.shape), b.output((rows, columns))
    counts = b.input((len(ends),), dtype="int32")
    inputs, expected = [x, np.array(ends, "int32")], exact(x, matrices, ends)
    post_ops: list[ir.PostOp] = []
    for function in functions:
        if function == "column":
            shift = random(1, columns, seed=2)
            post_ops.append(ir.BinaryPostOp("add", b.constant(shift)))
            expected = expected + shift
        elif function == "whole":
            other = random(rows, columns, seed=3)
            post_ops.append(ir.BinaryPostOp("mul", b.input(other.shape)))
            inputs.append(other)
            expected = expected * other
        else:
            post_ops.append(ir.EltwisePostOp("relu", 0.0, 0.0))
            expected = np.maximum(expected, 0)
    b.step(ir.GroupedProduct(), post_ops, src=src, weights=b.constant(matrices), ends=counts, dst=dst)
    check(b.run(*inputs), expected.astype("float32"), depth)
    assert library.describe(b.build()).steps[-1].implementation.startswith("grouped_product:")


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 12, 13, 48, 97])
@pytest.mark.parametrize("depth, columns", [(1, 1), (5, 16), (17, 33), (192, 15), (200, 130), (193, 257)])
def test_sizes(rows: int, depth: int, columns: int, threads: int) -> None:
    """Depths and columns beside whole tiles and beyond one part's."""
    run(rows, depth, columns, [rows // 3, rows // 3 + 1, rows])


@pytest.mark.parametrize(
    "ends",
    [
        [9, 9, 9, 9],
        [0, 0, 9, 9],
        [0, 0, 0, 0],
        [2, 4, 6, 8],
        [0, 5, 5, 7],
        [7, 3, 5, 8],
        [-5, 4, 20, 3],
        [20, 30, 40, 50],
        [-1, -2, -3, -4],
    ],
)
def test_any_ends(ends: list[int], threads: int) -> None:
    """Groups without rows, rows without a group, ends that are in no order or beyond the rows."""
    run(9, 40, 20, ends, "column")


@pytest.mark.parametrize("functions", [["column"], ["whole"], ["relu"], ["column", "relu", "whole"]])
def test_post_ops(functions: list[str], threads: int) -> None:
    """Behind rows without a group as well."""
    run(30, 24, 37, [10, 21], *functions)


def test_many_groups_and_rows(threads: int) -> None:
    random_ends = np.sort(np.random.default_rng(0).integers(0, 900, 64)).tolist()
    run(1000, 64, 200, random_ends, "column", "relu")


def test_the_same_bits_whichever_thread_does_a_part() -> None:
    """Threads take parts as it happens; results do not tell."""
    x, matrices = random(300, 200), random(8, 200, 300, seed=1)
    ends = np.array([10, 50, 50, 100, 101, 200, 250, 290], "int32")
    results = []
    for _ in range(3):
        b = Builder()
        src, counts, dst = b.input(x.shape), b.input((8,), dtype="int32"), b.output((300, 300))
        b.step(ir.GroupedProduct(), [], src=src, weights=b.constant(matrices), ends=counts, dst=dst)
        results.append(b.run(x, ends).tobytes())
    assert len(set(results)) == 1


def test_weights_are_packed_in_strips_of_sixteen() -> None:
    b = Builder()
    src, counts, dst = b.input((4, 24)), b.input((3,), dtype="int32"), b.output((4, 20))
    weights = b.constant(random(3, 24, 20))
    b.step(ir.GroupedProduct(), [], src=src, weights=weights, ends=counts, dst=dst)
    (step,) = library.describe(b.build()).steps
    assert step.weights_bytes == 3 * 24 * 32 * 4


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "sizes or any_ends or post_ops or many_groups")
