"""Operands that kernels may overwrite: proofs that must succeed, and ones that must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.script import tirx as T

from tvm_mxplan.passes.storage.tir_in_place import in_place_pairs, write_in_place


@T.prim_func(s_tir=True)
def add(
    x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 6), "float32"), out: T.Buffer((4, 6), "float32")
) -> None:
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 6):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = x[vi, vj] + y[vi, vj] * T.float32(2)


@T.prim_func(s_tir=True)
def add_row(
    x: T.Buffer((4, 6), "float32"), row: T.Buffer((6,), "float32"), out: T.Buffer((4, 6), "float32")
) -> None:
    for i, j in T.grid(4, 6):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = x[vi, vj] + row[vj]


@T.prim_func(s_tir=True)
def transpose(x: T.Buffer((4, 4), "float32"), out: T.Buffer((4, 4), "float32")) -> None:
    for i, j in T.grid(4, 4):
        with T.sblock("transpose"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = x[vj, vi]


@T.prim_func(s_tir=True)
def neighbours(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32")) -> None:
    for i in range(8):
        with T.sblock("sum"):
            vi = T.axis.spatial(8, i)
            out[vi] = x[vi] + x[(vi + 1) % 8]


@T.prim_func(s_tir=True)
def softmax_like(x: T.Buffer((4, 6), "float32"), out: T.Buffer((4, 6), "float32")) -> None:
    total = T.sblock_alloc_buffer((4,))
    for i, j in T.grid(4, 6):
        with T.sblock("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(x[vi, vj])
    for i, j in T.grid(4, 6):
        with T.sblock("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = T.exp(x[vi, vj]) / total[vi]


@T.prim_func(s_tir=True)
def read_again(
    x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32"), more: T.Buffer((1,), "float32")
) -> None:
    for i in range(8):
        with T.sblock("out"):
            vi = T.axis.spatial(8, i)
            out[vi] = x[vi] + T.float32(1)
    for i in range(1):
        with T.sblock("more"):
            vi = T.axis.spatial(1, i)
            more[vi] = x[vi + 3]


@T.prim_func(s_tir=True)
def matmul(
    x: T.Buffer((4, 4), "float32"), y: T.Buffer((4, 4), "float32"), out: T.Buffer((4, 4), "float32")
) -> None:
    for i, j, k in T.grid(4, 4, 4):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                out[vi, vj] = T.float32(0)
            out[vi, vj] = out[vi, vj] + x[vi, vk] * y[vk, vj]


@T.prim_func(s_tir=True)
def twice(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32")) -> None:
    for _again, i in T.grid(2, 8):
        with T.sblock("out"):
            vi = T.axis.spatial(8, i)
            out[vi] = x[vi] + T.float32(1)


@T.prim_func(s_tir=True)
def cast(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "int32")) -> None:
    for i in range(8):
        with T.sblock("out"):
            vi = T.axis.spatial(8, i)
            out[vi] = T.Cast("int32", x[vi])


@T.prim_func(s_tir=True)
def partial(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32")) -> None:
    for i in range(8):
        with T.sblock("out"):
            vi = T.axis.spatial(8, i)
            T.where(i < 5)
            out[vi] = x[vi] + T.float32(1)


@T.prim_func(s_tir=True)
def accumulate(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32")) -> None:
    for i in range(8):
        with T.sblock("out"):
            vi = T.axis.spatial(8, i)
            out[vi] = out[vi] + x[vi]


@T.prim_func(s_tir=True)
def rows_over_each_other(
    x: T.Buffer((6,), "float32"), y: T.Buffer((4, 6), "float32"), out: T.Buffer((6,), "float32")
) -> None:
    """The last row stays; each adds the operand, which the first would overwrite."""
    for i, j in T.grid(4, 6):
        with T.sblock("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vj] = x[vj] + y[vi, vj]


@T.prim_func(s_tir=True)
def one_row(
    x: T.Buffer((6,), "float32"), y: T.Buffer((1, 6), "float32"), out: T.Buffer((6,), "float32")
) -> None:
    for i, j in T.grid(1, 6):
        with T.sblock("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vj] = x[vj] + y[vi, vj]


CASES: list[tuple[Any, list[tuple[int, int]]]] = [
    (add, [(0, 2), (1, 2)]),
    (add_row, [(0, 2)]),
    (transpose, []),
    (neighbours, []),
    (softmax_like, [(0, 1)]),
    (read_again, []),
    (matmul, []),
    (twice, []),
    (cast, []),
    (partial, []),
    (accumulate, []),
    (rows_over_each_other, []),
    (one_row, [(0, 2)]),
]


@pytest.mark.parametrize("kernel, pairs", CASES, ids=[kernel.__name__ for kernel, _ in CASES])
def test_pairs(kernel: tirx.PrimFunc, pairs: list[tuple[int, int]]) -> None:
    assert in_place_pairs(kernel) == pairs


def test_the_kernel_names_one_buffer() -> None:
    @T.prim_func(s_tir=True)
    def expected(y: T.Buffer((4, 6), "float32"), out: T.Buffer((4, 6), "float32")) -> None:
        T.func_attr({"tirx.noalias": True})
        for i, j in T.grid(4, 6):
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                out[vi, vj] = out[vi, vj] + y[vi, vj] * T.float32(2)

    written = write_in_place(add, 0, 2)
    tvm.ir.assert_structural_equal(written, expected.without_attr("global_symbol"))


@pytest.mark.parametrize("kernel", [add, add_row, softmax_like], ids=["add", "add_row", "softmax_like"])
def test_in_place_kernels_compute_the_same(kernel: tirx.PrimFunc) -> None:
    rng = np.random.default_rng(1)
    shapes = [[int(dim) for dim in param.ty.shape] for param in kernel.params]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(kernel.with_attr("global_symbol", "f"), "llvm")["f"](*tensors)
    in_place = write_in_place(kernel, 0, len(arrays) - 1).with_attr("global_symbol", "f")
    result = tvm.runtime.tensor(arrays[0])
    tvm.compile(in_place, "llvm")["f"](*(tvm.runtime.tensor(array) for array in arrays[1:-1]), result)
    np.testing.assert_allclose(result.numpy(), tensors[-1].numpy(), rtol=1e-6)
