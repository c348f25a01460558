"""Proves that a TIR kernel may overwrite an operand with its result, and makes the kernel that does so.

Before   for i, j: out[i, j] = max(x[i, j] + y[j], 0)          f(x, y, out)
After    for i, j: out[i, j] = max(out[i, j] + y[j], 0)        f_in_place(y, out)

The proof: one statement writes `out`, a loop nest that visits every element once; there `x` is read at the
index that is written and nowhere else; no later statement reads `x`. Earlier statements may read `x` as they
like: fused kernels keep what they compute in buffers of their own. `x` and `out` have one type.

The kernel is rewritten to name one buffer instead of being called with two that overlap, so the promise
that buffers do not overlap (`tirx.noalias`) stays true, and every later pass may rely on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tvm
import tvm_ffi
from tvm import s_tir, tirx

_PURE = 1
Indices = Sequence[tvm.ir.Expr]


@dataclass
class _Accesses:
    """The accesses of one statement to buffers; ``opaque`` if that is not loads and stores alone."""

    loads: list[tuple[tvm.ir.Var, Indices]] = field(default_factory=list)
    stores: list[tuple[tvm.ir.Var, Indices]] = field(default_factory=list)
    opaque: bool = False

    def reads(self, buffer: tvm.ir.Var) -> list[Indices]:
        return [indices for loaded, indices in self.loads if loaded.same_as(buffer)]

    def writes(self, buffer: tvm.ir.Var) -> list[Indices]:
        return [indices for stored, indices in self.stores if stored.same_as(buffer)]


def in_place_pairs(kernel: tirx.PrimFunc) -> list[tuple[int, int]]:
    """Pairs of parameters (overwritten, result) that may share bytes."""
    statements = _statements(kernel.body)
    accesses = [_accesses(statement) for statement in statements]
    if not statements or any(access.opaque for access in accesses):
        return []
    written = [any(access.writes(param) for access in accesses) for param in kernel.params]
    return [
        (source, destination)
        for destination, result in enumerate(kernel.params)
        if written[destination]
        for source, operand in enumerate(kernel.params)
        if not written[source]
        and tvm_ffi.structural_equal(operand.ty, result.ty)
        and _may_share(statements, accesses, operand, result)
    ]


def write_in_place(kernel: tirx.PrimFunc, source: int, destination: int) -> tirx.PrimFunc:
    """The kernel, private, without the parameter ``source``, whose values it finds in ``destination``."""
    operand, result = kernel.params[source], kernel.params[destination]
    body = tvm_ffi.structural_map(
        kernel.body, (tvm.ir.Var, lambda var: result if var.same_as(operand) else var)
    )
    params = [param for at, param in enumerate(kernel.params) if at != source]
    return tirx.PrimFunc(params, body, kernel.ret_type, kernel.attrs).without_attr("global_symbol")


def _statements(body: tirx.Stmt) -> list[tirx.Stmt]:
    """The statements of a kernel in order; empty if its body is not understood."""
    if isinstance(body, s_tir.SBlockRealize):
        block = body.block
        if block.iter_vars or block.match_buffers or block.init is not None:
            return []
        body = block.body
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _accesses(statement: tirx.Stmt) -> _Accesses:
    found = _Accesses()
    unexplained = 0

    def variable(node: tvm.ir.Var) -> None:
        nonlocal unexplained
        unexplained += tirx.is_buffer_var(node)

    def region(_node: tvm.ir.TensorRegion) -> None:
        nonlocal unexplained
        unexplained -= 1

    def call(node: tvm.ir.Call) -> None:
        kind = node.op.get_attr("TCallEffectKind") if isinstance(node.op, tvm.ir.Op) else None
        pure = kind is not None and int(kind) <= _PURE and node.op.name != "tirx.address_of"
        found.opaque = found.opaque or not pure

    tvm_ffi.structural_walk(
        statement,
        [
            (tvm.ir.TensorLoad, lambda node: found.loads.append((node.source, node.indices))),
            (tirx.BufferStore, lambda node: found.stores.append((node.buffer, node.indices))),
            (tvm.ir.TensorRegion, region),
            (tvm.ir.Call, call),
            (tvm.ir.Var, variable),
        ],
    )
    found.opaque = found.opaque or unexplained != len(found.loads) + len(found.stores)
    return found


def _may_share(
    statements: Sequence[tirx.Stmt],
    accesses: Sequence[_Accesses],
    operand: tvm.ir.Var,
    result: tvm.ir.Var,
) -> bool:
    writers = [at for at, access in enumerate(accesses) if access.writes(result)]
    if len(writers) != 1:
        return False
    writer = writers[0]
    stores = accesses[writer].writes(result)
    if len(stores) != 1 or not _visits_once(statements[writer], stores[0]):
        return False
    read_before = any(access.reads(result) for access in accesses[: writer + 1])
    read_after = any(access.reads(operand) for access in accesses[writer + 1 :])
    same_index = all(_equal(indices, stores[0]) for indices in accesses[writer].reads(operand))
    return same_index and not read_before and not read_after


def _visits_once(statement: tirx.Stmt, store: Indices) -> bool:
    """True for a loop nest around one block that stores to every index at most once.

    Every loop is one axis of the block and every axis is one index of the store.
    """
    loops = []
    while isinstance(statement, tirx.For):
        loops.append(statement)
        statement = statement.body
    if not isinstance(statement, s_tir.SBlockRealize):
        return False
    block = statement.block
    if block.init is not None or not isinstance(block.body, tirx.BufferStore):
        return False
    if not (isinstance(statement.predicate, tirx.IntImm) and bool(statement.predicate.value)):
        return False
    bound = [value for value in statement.iter_values if not isinstance(value, tirx.IntImm)]
    axes = [axis.var for axis in block.iter_vars if not _is_one(axis.dom.extent)]
    return (
        all(axis.iter_type == tirx.IterVar.DataPar for axis in block.iter_vars)
        and _covers(bound, [loop.loop_var for loop in loops if not _is_one(loop.extent)])
        and len(statement.iter_values) == len(block.iter_vars)
        and _covers(store, axes)
    )


def _covers(values: Sequence[tvm.ir.Expr], variables: Sequence[tvm.ir.Var]) -> bool:
    """True if each of ``variables`` is one of ``values`` itself."""
    return all(any(var.same_as(value) for value in values) for var in variables)


def _is_one(extent: tvm.ir.Expr) -> bool:
    return isinstance(extent, tirx.IntImm) and int(extent.value) == 1


def _equal(a: Indices, b: Indices) -> bool:
    return len(a) == len(b) and all(
        x.same_as(y) or tvm_ffi.structural_equal(x, y) for x, y in zip(a, b, strict=True)
    )
