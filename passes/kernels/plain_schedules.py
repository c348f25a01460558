"""Plain schedules for GPUs, of kernels that no rule of dlight takes.

    kernel of blocks    the loops over elements around each block, a thread for each element; sums stay loops
    program, parallel   a thread for each turn of the parallel loop, in whose body all loops are serial
    program             one thread

A program is a kernel whose one block holds all of its loops, as that of an operator that is written out.
Loops that are not known to be independent run in one thread: slow, and right.
"""

from __future__ import annotations

from itertools import pairwise

import tvm
import tvm_ffi
from tvm import s_tir, tirx

_THREADS_OF_BLOCKS, _THREADS_OF_PROGRAMS = 256, 64
_BLOCKS_AXIS, _THREADS_AXIS = "blockIdx.x", "threadIdx.x"
_ENVIRONMENTS = ("thread_extent", "virtual_thread")


def has_threads(kernel: tirx.PrimFunc) -> bool:
    """Whether a kernel begins threads of a GPU by itself."""
    found = False

    def attribute(node: tirx.AttrStmt) -> None:
        nonlocal found
        found |= node.attr_key in _ENVIRONMENTS

    def loop(node: tirx.For) -> None:
        nonlocal found
        found |= node.kind == tirx.ForKind.THREAD_BINDING

    tvm_ffi.structural_walk(kernel.body, [(tirx.AttrStmt, attribute), (tirx.For, loop)])
    return found


def plain_schedule(kernel: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel with threads, by the table above."""
    root = kernel.body.block
    return _program(kernel, root) if _is_program(root) else _blocks(kernel, root)


def _is_program(root: s_tir.SBlock) -> bool:
    inner: list[s_tir.SBlock] = []
    tvm_ffi.structural_walk(root.body, (s_tir.SBlock, inner.append))
    return not inner


def _blocks(kernel: tirx.PrimFunc, root: s_tir.SBlock) -> tirx.PrimFunc:
    schedule = s_tir.Schedule(kernel)
    for block in schedule.get_child_blocks(schedule.get_sblock(root.name_hint)):
        loops = schedule.get_loops(block)
        if any(schedule.get(one).thread_binding is not None for one in loops):
            continue
        free = _independent([schedule.get(one) for one in loops])
        spread = [one for one, may in zip(loops, free, strict=True) if may]
        kept = [one for one, may in zip(loops, free, strict=True) if not may]
        if not spread:
            spread = [schedule.add_unit_loop(kept[0] if kept else block)]
        schedule.reorder(*spread, *kept)
        outer, inner = schedule.split(schedule.fuse(*spread), factors=[None, _THREADS_OF_BLOCKS])
        schedule.bind(outer, _BLOCKS_AXIS)
        schedule.bind(inner, _THREADS_AXIS)
    return schedule.mod["main"]


def _independent(loops: list[tirx.For]) -> list[bool]:
    """Of each loop around a block, whether it is an axis over elements, and nothing else."""
    if not loops or any(not outer.body.same_as(inner) for outer, inner in pairwise(loops)):
        return [False] * len(loops)
    realized = loops[-1].body
    if not isinstance(realized, s_tir.SBlockRealize):
        return [False] * len(loops)
    axes = list(zip(realized.block.iter_vars, realized.iter_values, strict=True))

    def only_over_elements(loop: tirx.For) -> bool:
        reading = [axis for axis, value in axes if _mentions(value, loop.loop_var)]
        exact = [axis for axis, value in axes if value.same_as(loop.loop_var)]
        return len(reading) == len(exact) == 1 and exact[0].iter_type == tirx.IterVar.DataPar

    return [only_over_elements(one) for one in loops]


def _mentions(value: tvm.ir.Expr, variable: tirx.Var) -> bool:
    found: list[tirx.Var] = []
    tvm_ffi.structural_walk(value, (tirx.Var, found.append))
    return any(one.same_as(variable) for one in found)


def _program(kernel: tirx.PrimFunc, root: s_tir.SBlock) -> tirx.PrimFunc:
    body, blocks, threads = root.body, tirx.IntImm("int64", 1), 1
    block, thread = tirx.Var("block", "int64"), tirx.Var("thread", "int64")
    if isinstance(body, tirx.For) and body.kind == tirx.ForKind.PARALLEL:
        threads = _THREADS_OF_PROGRAMS
        blocks = tirx.ceildiv(body.extent.astype("int64"), threads)
        turn = (block * threads + thread).astype(str(body.loop_var.ty))
        one = tirx.const(1, str(body.loop_var.ty))
        inside = tirx.For(body.loop_var, body.min + turn, one, tirx.ForKind.SERIAL, body.body)
        body = tirx.IfThenElse(turn < body.extent, inside, None)
    body = tvm_ffi.structural_map(body, (tirx.For, _serial))
    for variable, extent, axis in (
        (thread, tirx.IntImm("int64", threads), _THREADS_AXIS),
        (block, blocks, _BLOCKS_AXIS),
    ):
        environment = tirx.IterVar(None, tirx.Var(axis, "int64"), tirx.IterVar.ThreadIndex, axis)
        zero = tirx.IntImm("int64", 0)
        body = tirx.For(variable, zero, extent, tirx.ForKind.THREAD_BINDING, body, environment)
    made = s_tir.SBlock(
        root.iter_vars,
        root.reads,
        root.writes,
        root.name_hint,
        body,
        root.init,
        root.alloc_buffers,
        root.match_buffers,
        root.annotations,
    )
    realized = kernel.body
    return kernel.with_body(s_tir.SBlockRealize(realized.iter_values, realized.predicate, made))


def _serial(loop: tirx.For) -> tirx.For:
    if loop.kind == tirx.ForKind.SERIAL:
        return loop
    kind = tirx.ForKind.SERIAL
    return tirx.For(loop.loop_var, loop.min, loop.extent, kind, loop.body, annotations=loop.annotations)
