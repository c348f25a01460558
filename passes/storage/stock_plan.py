"""The result of TVM's own ``StaticPlanBlockMemory``: its total, and its plan as one of ours.

Before   R.memory.alloc_storage(R.shape([96]))  and  R.builtin.alloc_tensor(R.shape([2, 6]))   behind it
After    128 + 64 bytes

Every allocation counts at a multiple of 64 bytes, which is the least that the VM gives out. Stacked, TVM's
storages are a plan without offsets inside; where that is valid it serves as a bound: ours is never above.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.core.allocation import Plan, Problem
from tvm_mxplan.core.allocation.alignment import ALIGNMENT

from ..canonicalize.rewriter import is_call_to
from .relax_sizes import Bounds


@dataclass(frozen=True)
class StockPlan:
    """The storages of one function, those of allocations that were left alone included.

    Attributes
    ----------
    sizes : bytes of each storage.
    storages : for each allocation, in the order of the text, its storage.
    """

    sizes: tuple[int, ...]
    storages: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def as_plan(self, problem: Problem, groups: tuple[tuple[int, ...], ...]) -> Plan | None:
        """The same storages, stacked, for the items of ``problem``; None where arenas are several."""
        if len(problem.scopes) != 1:
            return None
        sizes: dict[int, int] = {}
        slots = [self.storages[group[0]] for group in groups]
        for item, slot in zip(problem.items, slots, strict=True):
            sizes[slot] = max(sizes.get(slot, self.sizes[slot]), _rounded(item.extent))
        bases, height = {}, 0
        for slot, size in sizes.items():
            bases[slot] = height
            height += size
        return Plan(tuple(bases[slot] for slot in slots), {problem.scopes[0]: height})


def stock_plan(mod: tvm.IRModule, gvar: tvm.ir.GlobalVar) -> StockPlan | None:
    """TVM's plan of a function as ``CallTIRRewrite`` leaves it; None where a size is symbolic."""
    function = relax.transform.StaticPlanBlockMemory()(mod)[gvar]
    bounds = Bounds([])
    sizes: list[int] = []
    storages: list[int] = []
    numbers: dict[tvm.ir.Var, int] = {}
    for var, call in _calls(function.body):
        name = call.op.name
        if name == "relax.memory.alloc_tensor":
            storages.append(numbers[call.args[0]])
            continue
        dtype = "uint8" if name == "relax.memory.alloc_storage" else str(call.args[1].value)
        size = bounds.size_of(call.args[0].values, dtype)
        if size is None:
            return None
        numbers[var] = len(sizes)
        sizes.append(_rounded(size.nbytes))
        if name == "relax.builtin.alloc_tensor":
            storages.append(numbers[var])
    return StockPlan(tuple(sizes), tuple(storages))


def _calls(seq: relax.SeqExpr) -> Iterator[tuple[tvm.ir.Var, tvm.ir.Call]]:
    """The allocations, in the order of the text."""
    for block in seq.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.If):
                yield from _calls(value.true_branch)
                yield from _calls(value.false_branch)
            elif is_call_to(value, "memory.alloc_storage", "memory.alloc_tensor", "builtin.alloc_tensor"):
                yield binding.var, value


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
