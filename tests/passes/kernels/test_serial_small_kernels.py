"""Parallel loops with little to do become serial; those with much, or nobody knows how much, stay."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.options import Options
from tvm_mxplan.passes.kernels import SerialSmallKernels
from tvm_mxplan.passes.kernels.serial_small_kernels import MIN_WORK, work
from tvm_mxplan.pipeline import build_pipeline

TARGET = tvm.target.Target("llvm")


def parallel_extents(kernel: tirx.PrimFunc) -> list[int | None]:
    """Extents of the parallel loops, None for symbolic ones."""
    found: list[tirx.For] = []
    tvm_ffi.structural_walk(kernel.body, (tirx.For, lambda loop: found.append(loop)))
    extents = [loop.extent for loop in found if loop.kind == tirx.ForKind.PARALLEL]
    return [int(extent.value) if isinstance(extent, tirx.IntImm) else None for extent in extents]


def parallel_loops(mod: tvm.IRModule) -> int:
    """The number of parallel loops in the module's kernels; there must be kernels."""
    kernels = [function for function in mod.functions.values() if isinstance(function, tirx.PrimFunc)]
    assert kernels
    return sum(len(parallel_extents(kernel)) for kernel in kernels)


def applied(kernel: tirx.PrimFunc, min_work: int = MIN_WORK) -> tirx.PrimFunc:
    name = kernel.attrs["global_symbol"]
    return SerialSmallKernels(min_work)(tvm.IRModule({name: kernel}))[name]


@T.prim_func(s_tir=True)
def rows(x: T.Buffer((4, 6), "float32"), out: T.Buffer((4, 6), "float32")) -> None:
    for i in T.parallel(4):
        for j in range(6):
            out[i, j] = x[i, j] + T.float32(1)


@T.prim_func(s_tir=True)
def serial_rows(x: T.Buffer((4, 6), "float32"), out: T.Buffer((4, 6), "float32")) -> None:
    for i in range(4):
        for j in range(6):
            out[i, j] = x[i, j] + T.float32(1)


@T.prim_func(s_tir=True)
def many_rows(x: T.Buffer((4096, 1024), "float32"), out: T.Buffer((4096, 1024), "float32")) -> None:
    for i in T.parallel(4096):
        for j in range(1024):
            out[i, j] = x[i, j] + T.float32(1)


@T.prim_func(s_tir=True)
def unknown_rows(x: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")) -> None:
    for i in T.parallel(4):
        for j in range(x[i]):
            out[i] = out[i] + T.Cast("float32", j)


@T.prim_func(s_tir=True)
def loops_until(x: T.Buffer((4,), "int32")) -> None:
    for i in T.parallel(4):
        while x[i] > 0:
            x[i] = x[i] - 1


@T.prim_func(s_tir=True)
def calls_out(x: T.Buffer((4,), "float32")) -> None:
    for i in T.parallel(4):
        x[i] = T.call_extern("float32", "somewhere_else", i)


@T.prim_func(s_tir=True)
def inside(x: T.Buffer((64, 4), "float32"), y: T.Buffer((64, 9), "float32")) -> None:
    for i in range(64):
        for j in T.parallel(4):
            x[i, j] = T.float32(1)
        for j in T.parallel(9):
            y[i, j] = T.float32(1)


@T.prim_func(s_tir=True)
def marked(x: T.Buffer((4,), "float32")) -> None:
    with T.attr(0, "pragma_scope", "seq"):
        for i in range(4):
            x[i] = T.float32(1)


def test_marks_of_sequences_go() -> None:
    """TVM's code generator for CPUs prints a warning of each."""

    def marks(kernel: tirx.PrimFunc) -> list[str]:
        found: list[str] = []
        tvm_ffi.structural_walk(kernel.body, (tirx.AttrStmt, lambda one: found.append(str(one.attr_key))))
        return found

    assert "pragma_scope" in marks(marked)
    after = SerialSmallKernels()(tvm.IRModule({"marked": marked}))["marked"]
    assert "pragma_scope" not in marks(after)


def test_a_small_kernel_becomes_serial() -> None:
    expected = serial_rows.with_attr("global_symbol", "rows")
    assert parallel_extents(rows) == [4]
    tvm.ir.assert_structural_equal(applied(rows), expected)


def test_a_large_kernel_stays_as_it_is() -> None:
    assert work(many_rows.body) == 4096 * 1024 * 2 > MIN_WORK
    tvm.ir.assert_structural_equal(applied(many_rows), many_rows)


def test_the_limit_is_where_it_is_said_to_be() -> None:
    assert work(rows.body) == 48
    tvm.ir.assert_structural_equal(applied(rows, min_work=48), rows)
    assert parallel_extents(applied(rows, min_work=49)) == []


@T.prim_func(s_tir=True)
def reads_state(x: T.Buffer((4,), "int32")) -> None:
    for i in T.parallel(4):
        x[i] = T.undef(dtype="int32")


@T.prim_func(s_tir=True)
def in_steps(x: T.Buffer((12,), "float32")) -> None:
    for i in T.parallel(0, 12, annotations={"note": 7}):
        x[i] = T.sqrt(x[i])


@pytest.mark.parametrize("kernel", [unknown_rows, loops_until, calls_out, reads_state])
def test_what_nobody_knows_stays_parallel(kernel: tirx.PrimFunc) -> None:
    assert work(kernel.body) == math.inf
    tvm.ir.assert_structural_equal(applied(kernel), kernel)


def test_what_a_loop_says_of_itself_is_kept() -> None:
    """Its annotations, its extent and where it begins."""
    assert work(in_steps.body) == 12 * (2 + 8)
    (before, after) = (kernel.body for kernel in (in_steps, applied(in_steps)))
    while not isinstance(before, tirx.For):
        before, after = before.block.body, after.block.body
    assert (before.kind, after.kind) == (tirx.ForKind.PARALLEL, tirx.ForKind.SERIAL)
    assert dict(after.annotations) == dict(before.annotations) == {"note": 7}
    assert (int(after.min), int(after.extent)) == (0, 12)
    tvm.ir.assert_structural_equal(after.body, before.body, map_free_vars=True)


def test_loops_inside_others_count_for_one_launch() -> None:
    assert parallel_extents(inside) == [4, 9]
    assert parallel_extents(applied(inside, min_work=9)) == [9]


def test_work_counts_starts_of_sums_branches_and_functions() -> None:
    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((8, 4), "float32"), out: T.Buffer((8,), "float32")) -> None:
        for i, j in T.grid(8, 4):
            with T.sblock("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    out[vi] = T.float32(0)
                if x[vi, vj] > T.float32(0):
                    out[vi] = out[vi] + T.exp(x[vi, vj])
                else:
                    out[vi] = T.float32(0)

    per_point = 1 + 1 + (3 + 8)  # the start, the condition, the longer branch with its function
    assert work(kernel.body) == 8 * 4 * per_point


def test_work_counts_conditions_without_another_branch() -> None:
    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32")) -> None:
        for i in range(8):
            if x[i] > T.float32(0):
                out[i] = x[i]

    assert work(kernel.body) == 8 * (1 + 2)


STORE = tirx.BufferStore(
    tirx.decl_buffer((4,), "float32", name="b"), tirx.const(1, "float32"), [tirx.const(0)]
)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (STORE, 1),
        (tirx.Evaluate(tirx.const(0)), 0),
        (tirx.Bind(tirx.Var("v", "int32"), tirx.const(3)), 0),
        (tirx.AllocBuffer(STORE.buffer), 0),
        (tirx.AssertStmt(tirx.const(True, "bool"), tvm.ir.StringImm("RuntimeError"), []), 0),
        (tirx.SeqStmt([STORE, STORE]), 2),
        (tirx.While(tirx.const(True, "bool"), STORE), math.inf),
    ],
)
def test_statements_without_loops_count_what_they_load_and_store(
    statement: tirx.Stmt, expected: float
) -> None:
    assert work(statement) == expected


def test_work_on_other_views_of_a_buffer_is_known() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((8,), "float32")) -> None:
        seen = T.decl_buffer((2, 4), "float32", data=x.data)
        seen[0, 1] = T.float32(1)

    declared: list[tirx.DeclBuffer] = []
    tvm_ffi.structural_walk(kernel.body, (tirx.DeclBuffer, lambda one: declared.append(one)))
    assert len(declared) == 1
    assert 1 <= work(kernel.body) < math.inf


@I.ir_module
class Symbolic:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32")) -> R.Tensor(("n", 16), "float32"):
        return R.cumsum(x, axis=1)


def test_symbolic_extents_stay_parallel() -> None:
    lowered = relax.get_default_pipeline(TARGET)(Symbolic)
    assert parallel_loops(SerialSmallKernels()(lowered)) == parallel_loops(lowered) == 1


@pytest.mark.parametrize(
    "make",
    [
        relax.op.floor,
        lambda x: relax.op.where(relax.op.greater(x, relax.const(np.float32(0))), x, relax.op.erf(x)),
        relax.op.nn.softmax,
        lambda x: relax.op.matmul(x, relax.op.permute_dims(x)),
        lambda x: relax.op.take(x, relax.const(np.arange(500)), axis=0),
        lambda x: relax.op.mean(x, axis=1),
    ],
    ids=["elementwise", "fused", "softmax", "matmul", "gather", "reduction"],
)
def test_the_stock_pipeline_makes_no_loop_parallel(make: Callable[[relax.Expr], relax.Expr]) -> None:
    """A fact that this project counts on; from the day it fails, TVM's kernels are worth timing again."""
    mod = relax.get_default_pipeline(TARGET)(_function((1024, 1024), make))
    assert parallel_loops(mod) == 0


@pytest.mark.parametrize("width, stays", [(14, 0), (112, 1)])
def test_between_regions(width: int, stays: int) -> None:
    """The pipeline makes small kernels serial, leaves large ones, and the numbers are those of numpy."""
    shape = (1, 16, width, width)
    identity = np.zeros((16, 16, 1, 1), "float32")
    identity[range(16), range(16)] = 0.5

    def conv(x: relax.Expr) -> relax.Expr:
        return relax.op.nn.conv2d(x, relax.const(identity))

    mod = _function(shape, lambda x: conv(relax.op.cumsum(conv(x), axis=3)))
    with TARGET:
        assert parallel_loops(build_pipeline([OneDNN()], Options(), TARGET)(mod)) == stays
    ex = tvm_mxplan.compile(mod, "dnnl, llvm")
    assert len(ex.report.regions) == 2
    assert [fallback.operator for fallback in ex.report.fallbacks] == ["relax.cumsum"]
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    (y,) = ex(x)
    np.testing.assert_allclose(y.numpy(), np.cumsum(x / 2, axis=3) / 2, rtol=1e-5, atol=1e-5)


def _function(shape: tuple[int, ...], make: Callable[[relax.Expr], Any]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.emit(make(x)))
        builder.emit_func_output(y)
    return builder.get()


def test_where_waking_threads_begins_to_pay() -> None:
    """Between the measured 393,000 and 786,000 loads and stores."""
    assert SerialSmallKernels().min_work == MIN_WORK == 524_288
