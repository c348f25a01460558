"""``ScheduleKernels``: schedules for GPUs, with their threads run one after the other on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import tvm
import tvm_ffi
from relax_programs import TARGET, normal, run
from tvm import relax, te, tirx
from tvm.relax.backend.cuda import pipeline as cuda
from tvm.s_tir.dlight import gpu
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.passes.kernels import ScheduleKernels
from tvm_mxplan.passes.kernels.plain_schedules import has_threads
from tvm_mxplan.passes.kernels.schedule_kernels import RULES

GPU = tvm.target.Target({"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm"}})
Emit = Callable[[relax.BlockBuilder, Sequence[relax.Var]], relax.Expr]


def legal(emit: Emit, shapes: Sequence[tuple[int, ...]], types: Sequence[str]) -> tvm.IRModule:
    """Operators, legalized and fused: a module with its kernels."""
    builder = relax.BlockBuilder()
    inputs = [
        relax.Var(f"x{at}", relax.TensorType(shape, dtype))
        for at, (shape, dtype) in enumerate(zip(shapes, types, strict=True))
    ]
    with builder.function("main", inputs):
        with builder.dataflow():
            out = builder.emit_output(emit(builder, inputs))
        builder.emit_func_output(out)
    fused = [
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
    return tvm.transform.Sequential(fused)(builder.get())


def scheduled(mod: tvm.IRModule, *rules: object, journal: Journal | None = None) -> tvm.IRModule:
    (standard,) = [one for one in cuda.legalize_passes(GPU) if one.info.name == RULES]
    with GPU:
        return ScheduleKernels(*(rules or standard.rules), journal=journal)(mod)


def kernels(mod: tvm.IRModule) -> list[tirx.PrimFunc]:
    return [one for one in mod.functions.values() if isinstance(one, tirx.PrimFunc)]


def in_turns(mod: tvm.IRModule) -> tvm.IRModule:
    """Kernels whose threads are turns of loops; none of them may share memory."""

    def serial(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.THREAD_BINDING:
            return loop
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)

    mod = mod.clone()
    for name, kernel in list(mod.functions_items()):
        if isinstance(kernel, tirx.PrimFunc):
            assert "shared" not in kernel.script(), "threads that wait for each other cannot take turns"
            mod.update_func(name, kernel.with_body(tvm_ffi.structural_map(kernel.body, (tirx.For, serial))))
    return mod


def check_numbers(before: tvm.IRModule, after: tvm.IRModule, *operands: np.ndarray) -> None:
    assert kernels(after) and all(has_threads(one) for one in kernels(after))
    right, found = (
        run(relax.VirtualMachine(tvm.compile(one, TARGET), tvm.cpu()), *operands)
        for one in (before, in_turns(after))
    )
    for expected, one in zip(right, found, strict=True):
        assert np.ptp(expected) > 0
        np.testing.assert_array_equal(one, expected)


def divided_by_their_weights(builder: relax.BlockBuilder, x: Sequence[relax.Var]) -> relax.Expr:
    """The gradient of a loss with weights of 1: their sum reads nothing that varies once they are inlined."""

    def compute(values: te.Tensor, labels: te.Tensor) -> te.Tensor:
        ones = te.compute((9,), lambda at: tirx.const(1.0, "float32"), name="ones")
        weights = te.compute((4,), lambda at: ones[labels[at]], name="weights")
        turn = te.reduce_axis((0, 4), name="turn")
        total = te.compute((), lambda: te.sum(weights[turn], axis=turn), name="total")
        return te.compute((4,), lambda at: values[at] / total(), name="divided")

    return builder.call_te(compute, *x)


def pool_backward(_: relax.BlockBuilder, x: Sequence[relax.Var]) -> relax.Expr:
    return relax.op.grad.max_pool2d_backward(*x, (2, 2), (2, 2))


def adaptive(_: relax.BlockBuilder, x: Sequence[relax.Var]) -> relax.Expr:
    return relax.op.nn.adaptive_avg_pool2d(x[0], (3, 4))


def test_a_rule_that_fails_leaves_the_kernel_to_the_next_one() -> None:
    mod = legal(divided_by_their_weights, [(4,), (4,)], ["float32", "int64"])
    (kernel,) = kernels(mod)
    with pytest.raises(AssertionError):
        gpu.Reduction().apply(kernel, GPU, False)
    journal = Journal()
    after = scheduled(mod, gpu.Reduction(), gpu.Fallback(), journal=journal)
    check_numbers(mod, after, normal(0, 4), np.array([3, 0, 8, 8]))
    ((name, said),) = journal.failures.items()
    assert isinstance(after[name], tirx.PrimFunc)
    assert said == "schedule Reduction (AssertionError: AssertionError)"


def test_a_schedule_that_cannot_be_lowered_is_none() -> None:
    mod = legal(pool_backward, [(4, 6, 2, 3), (4, 6, 5, 7)], ["float32"] * 2)
    (kernel,) = kernels(mod)
    assert gpu.GeneralReduction().apply(kernel, GPU, False) is not None, "TVM's rule refuses by now"
    journal = Journal()
    check_numbers(mod, scheduled(mod, journal=journal), normal(0, 4, 6, 2, 3), normal(1, 4, 6, 5, 7))
    (said,) = journal.failures.values()
    assert said.startswith("schedule GeneralReduction (") and "None" not in said


def test_blocks_that_no_rule_takes_get_threads() -> None:
    mod = legal(adaptive, [(4, 6, 5, 7)], ["float32"])
    (kernel,) = kernels(mod)
    assert gpu.Fallback().apply(kernel, GPU, False) is None, "TVM's rule takes it by now"
    journal = Journal()
    made = scheduled(mod, journal=journal)
    assert journal.failures == {}, "a refusal is none"
    assert "blockIdx.x" in made.script()
    check_numbers(mod, made, normal(0, 4, 6, 5, 7))


def program(kind: str) -> Emit:
    """Rows of numbers, doubled: a kernel written as a program."""

    def body(ins: Sequence[tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
        with IRBuilder() as ib:
            with getattr(T, kind)(1, 131) as row, T.vectorized(0, 4) as at:
                T.buffer_store(outs[0], ins[0][row * 4 + at] * 2, [row * 4 + at])
            return ib.get()

    def emit(builder: relax.BlockBuilder, x: Sequence[relax.Var]) -> relax.Expr:
        def compute(operand: te.Tensor) -> te.Tensor:
            return te.extern([(524,)], [operand], body, name="doubled", dtype="float32")

        return builder.call_te(compute, x[0])

    return emit


@pytest.mark.parametrize(("kind", "threads"), [("parallel", 64), ("serial", 1)])
def test_programs_get_a_thread_for_each_turn_that_is_parallel(kind: str, threads: int) -> None:
    mod = legal(program(kind), [(524,)], ["float32"])
    made = scheduled(mod)
    (kernel,) = kernels(made)
    bound: dict[str, int] = {}

    def loop(node: tirx.For) -> None:
        if node.thread_binding is not None:
            bound[node.thread_binding.thread_tag] = int(node.extent)
        else:
            assert node.kind == tirx.ForKind.SERIAL

    tvm_ffi.structural_walk(kernel.body, (tirx.For, loop))
    assert bound == {"blockIdx.x": -(-130 // threads) if threads > 1 else 1, "threadIdx.x": threads}
    one = in_turns(made)
    found, right = (
        run(relax.VirtualMachine(tvm.compile(each, TARGET), tvm.cpu()), normal(0, 524))[0][4:]
        for each in (one, mod)
    )
    np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(found, 2 * normal(0, 524)[4:])


def test_kernels_of_the_cpu_are_left_alone() -> None:
    mod = legal(adaptive, [(4, 6, 5, 7)], ["float32"])
    for name, kernel in list(mod.functions_items()):
        if isinstance(kernel, tirx.PrimFunc):
            mod.update_func(name, kernel.with_attr("target", tvm.target.Target("llvm")))
    tvm.ir.assert_structural_equal(scheduled(mod), mod)
