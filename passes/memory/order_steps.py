"""The order of a region's steps: the one of smaller peak, where that is not the one they came in.

Before   a = conv(x); b = conv(x); c = pool(a); d = pool(b); ...      two large values at once
After    a = conv(x); c = pool(a); b = conv(x); d = pool(b); ...      one large, one small

Steps that touch the same bytes keep their order where one of them writes, so results in place and pieces of a
whole stay what they are.  The primitives are the same in any order.

Left to others: the decision (core.ordering), whether the plan gets smaller by it (plan_memory).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tvm_mxplan.core.allocation.alignment import ALIGNMENT
from tvm_mxplan.core.ordering import Graph, Tensor, choose_order
from tvm_mxplan.core.program import program as ir

from .liveness import offset_in_root


@dataclass(frozen=True)
class _Access:
    """Bytes ``[low, high)`` of a root that a step reads or writes."""

    step: int
    low: int
    high: int
    writes: bool

    def conflicts(self, other: _Access) -> bool:
        touch = self.low < other.high and other.low < self.high
        return touch and self.step != other.step and (self.writes or other.writes)


def order_steps(program: ir.Program) -> ir.Program:
    """The program in an order of steps that takes no more bytes at once; itself if there is no better one."""
    order = choose_order(step_graph(program)).steps
    if order == tuple(range(len(order))):
        return program
    return replace(program, steps=tuple(program.steps[step] for step in order))


def step_graph(program: ir.Program) -> Graph:
    """The steps, and the bytes of the arena that they hand to one another."""
    accesses: dict[int, list[_Access]] = defaultdict(list)
    for at, step in enumerate(program.steps):
        for value in program.reads(step):
            accesses[program.root(value)].append(_access(program, at, value, writes=False))
        for value in step.results:
            accesses[program.root(value)].append(_access(program, at, value, writes=True))
    before = sorted({pair for group in accesses.values() for pair in _ordered_pairs(group)})
    tensors: list[Tensor] = []
    transient = [max(step.scratchpad_bytes, 0) for step in program.steps]
    for root, group in accesses.items():
        if program.values[root].kind == "local":
            tensors += _tensors(group)
            for access in group:
                if access.writes:
                    transient[access.step] -= _replaced(access, group)
    return Graph(len(program.steps), tuple(tensors), tuple(transient), tuple(before))


def _access(program: ir.Program, step: int, value: int, *, writes: bool) -> _Access:
    low = offset_in_root(program, value)
    return _Access(step, low, low + max(program.values[value].nbytes, 0), writes)


def _ordered_pairs(group: list[_Access]) -> Iterator[tuple[int, int]]:
    for at, access in enumerate(group):
        for other in group[at + 1 :]:
            if access.conflicts(other):
                yield min(access.step, other.step), max(access.step, other.step)


def _tensors(group: list[_Access]) -> Iterator[Tensor]:
    """One for each write, read by those that need its bytes before another write covers them."""
    writes = [access for access in group if access.writes]
    for write in writes:
        later = [other for other in writes if other.step > write.step]
        readers = [
            read.step
            for read in group
            if not read.writes
            and read.step > write.step
            and read.conflicts(write)
            and not any(other.step < read.step and _covers(other, read) for other in later)
        ]
        nbytes = -(-(write.high - write.low) // ALIGNMENT) * ALIGNMENT
        yield Tensor(nbytes, write.step, tuple(dict.fromkeys(readers)))


def _replaced(write: _Access, group: list[_Access]) -> int:
    """Bytes of the result that stand where the step's own operands do."""
    shared = [
        min(write.high, other.high) - max(write.low, other.low)
        for other in {access for access in group if access.step == write.step and not access.writes}
    ]
    return sum(max(nbytes, 0) for nbytes in shared)


def _covers(write: _Access, read: _Access) -> bool:
    return write.low <= read.low and read.high <= write.high
