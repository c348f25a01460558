"""``SerialSmallKernels``: kernels with little to do run on the thread that calls them.

Before   for i in T.parallel(4): out[i] = x[i] + 1
After    for i in range(4): out[i] = x[i] + 1

A parallel loop wakes the workers of TVM's thread pool, beside those of the library's regions.  That takes
longer than a small kernel, so a loop stays parallel only if it does ``MIN_WORK`` or more, or if nobody knows
what it does: symbolic extents, ``while``, calls with effects.

TVM's pipeline for CPUs schedules nothing: kernels are serial where a loop nest is all there is to them.
Parallel loops come from operators that are written as programs (cumulative sums, scatter, sorted search,
non-maximum suppression) and with a user's own kernels.  Making more loops parallel is left to schedulers.

What such programs mark as a sequence (``pragma_scope``) loses the mark: a CPU runs nothing otherwise, and
TVM's code generator prints a warning of each.
"""

from __future__ import annotations

import math

import tvm
import tvm_ffi
from tvm import s_tir, tirx

MIN_WORK = 1 << 19
"""In loads and stores, and ``_CALL`` for each function called; with less, waking costs what it spares.

Measured with cumulative sums between oneDNN's convolutions, on two processors with AVX-512: parallel ones
took 77 us and serial ones 6 us at 12,000 loads and stores, 127 and 104 us at 393,000, 180 and 208 us at
786,000.
"""

_SEQUENCE = "pragma_scope"
_CALL = 8
_PURE = 1
_LEAVES = (tirx.BufferStore, tirx.Evaluate, tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer, tirx.AssertStmt)


@tvm.transform.module_pass(opt_level=0, name="SerialSmallKernels")
class SerialSmallKernels:
    """Module pass; see the module's text.

    Parameters
    ----------
    min_work : from where on a loop stays parallel.
    """

    def __init__(self, min_work: int = MIN_WORK) -> None:
        self.min_work = min_work

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, tirx.PrimFunc):
                body = tvm_ffi.structural_map(function.body, (tirx.AttrStmt, _without_mark))
                body = tvm_ffi.structural_map(body, (tirx.For, self._serial_if_small))
                if not body.same_as(function.body):
                    mod.update_func(gvar, function.with_body(body))
        return mod

    def _serial_if_small(self, loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL or not work(loop) < self.min_work:
            return loop
        return tirx.For(
            loop.loop_var,
            loop.min,
            loop.extent,
            tirx.ForKind.SERIAL,
            loop.body,
            annotations=loop.annotations,
            step=loop.step,
        )


def _without_mark(statement: tirx.AttrStmt) -> tirx.Stmt:
    return statement.body if str(statement.attr_key) == _SEQUENCE else statement


def work(statement: tirx.Stmt) -> float:
    """Bounds the work of a statement: loads and stores, and calls at what they are held to be worth.

    Infinite where that is not known.
    """
    if isinstance(statement, tirx.For):
        extent = statement.extent
        return int(extent.value) * work(statement.body) if isinstance(extent, tirx.IntImm) else math.inf
    if isinstance(statement, tirx.SeqStmt):
        return sum(work(part) for part in statement.seq)
    if isinstance(statement, s_tir.SBlockRealize):
        block = statement.block
        return work(block.body) + (0 if block.init is None else work(block.init))
    if isinstance(statement, tirx.IfThenElse):
        ways = [way for way in (statement.then_case, statement.else_case) if way is not None]
        return _leaf(statement.condition) + max(work(way) for way in ways)
    if isinstance(statement, tirx.AttrStmt):
        return work(statement.body)
    return _leaf(statement) if isinstance(statement, _LEAVES) else math.inf


def _leaf(statement: tirx.Stmt | tvm.ir.Expr) -> float:
    """The same for what has no statement inside."""
    found: list[float] = []

    def call(node: tvm.ir.Call) -> None:
        kind = node.op.get_attr("TCallEffectKind") if isinstance(node.op, tvm.ir.Op) else None
        found.append(_CALL if kind is not None and int(kind) <= _PURE else math.inf)

    tvm_ffi.structural_walk(
        statement,
        [
            ((tvm.ir.TensorLoad, tirx.BufferStore), lambda _node: found.append(1)),
            (tvm.ir.Call, call),
        ],
    )
    return sum(found)
