"""The plan of one lowered Relax function: an arena and an offset for each allocation that can have them.

Before   alloc = R.builtin.alloc_tensor(...)       in the IR, which stays as it is
After    alloc: arena "0", byte 128                in a `StoragePlan`

What escapes, what nobody touches, and what has no size at the function's entry gets no place. Plans are
checked by a validator that shares nothing with the solver, and never need more than TVM's own.

Left to others: writing the plan into the IR (storage_rewrite).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import tvm
import tvm_ffi
from tvm import tirx

from tvm_mxplan.core.allocation import Plan, solve, validate
from tvm_mxplan.core.program.program import Program
from tvm_mxplan.errors import InternalError

from .region_calls import Region
from .relax_aliases import StorageStep, StorageTensor, Trace, name_of, trace_function
from .relax_liveness import find_lives
from .stock_plan import stock_plan
from .storage_problem import InPlacePairs, StorageProblem, storage_problem
from .tir_in_place import in_place_pairs

_LEAST_FACTOR = 512


@dataclass(frozen=True)
class StorageArena:
    """The properties that the allocations of one arena share.

    Attributes
    ----------
    scope : its name in the allocation problem.
    device : index of the virtual device.
    unit : the expression that sizes and offsets are multiples of; None for bytes.
    bounded : variables with the upper bounds that its size relies on.
    """

    scope: str
    device: int
    unit: tvm.ir.Expr | None
    bounded: tuple[tuple[tirx.Var, int], ...] = ()


@dataclass(frozen=True)
class StoragePlan:
    """The plan of one function.

    Attributes
    ----------
    trace : the allocations, by number.
    problem, plan : what was asked and answered.
    arenas : by scope.
    """

    trace: Trace
    problem: StorageProblem
    plan: Plan
    arenas: dict[str, StorageArena]

    def placements(self) -> dict[tvm.ir.Var, tuple[StorageArena, int]]:
        """Arena and offset by the variable of the allocation."""
        found = {}
        for at, group in enumerate(self.problem.groups):
            item, offset = self.problem.problem.items[at], self.plan.offsets[at]
            for number in group:
                found[self.trace.tensors[number].var] = (self.arenas[item.scope], offset)
        return found

    def programs(self) -> dict[str, Program]:
        """The programs of open regions, by name, with their values where the plan puts them."""
        programs = {}
        first = len(self.problem.groups)
        for call in self.problem.opened:
            end = first + len(call.region.posed.problem.items)
            height = self.plan.heights[call.scope]
            programs[name_of(call.step.call)] = call.region.planned(self.plan.offsets[first:end], height)
            first = end
        return programs


class Kernels:
    """The writes in place that the TIR kernels of a module allow; each is looked at once."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self._mod = mod
        self._pairs: dict[tvm.ir.GlobalVar, list[tuple[int, int]]] = {}

    def pairs(self, step: StorageStep) -> Sequence[tuple[int, int]]:
        """Pairs of arguments (overwritten, result) of a call."""
        kernel = step.call.op
        if not isinstance(kernel, tvm.ir.GlobalVar) or not isinstance(self._mod[kernel], tirx.PrimFunc):
            return ()
        if kernel not in self._pairs:
            self._pairs[kernel] = in_place_pairs(self._mod[kernel])
        return self._pairs[kernel]


def plan_storage(
    mod: tvm.IRModule,
    gvar: tvm.ir.GlobalVar,
    pairs: InPlacePairs | None = None,
    regions: Mapping[str, Region] | None = None,
) -> StoragePlan:
    """Plan a function of ``mod`` as ``CallTIRRewrite`` leaves it.

    Calls may do in place what ``pairs`` says; by default what the bodies of their kernels prove.  ``regions``
    are those of the module, by the name they are called by.
    """
    trace = trace_function(mod, mod[gvar])
    lives = find_lives(trace)
    arenas: dict[str, StorageArena] = {}
    scopes: dict[int, str] = {}
    for number, tensor in enumerate(trace.tensors):
        if number not in trace.escaping and lives.intervals[number]:
            arena = _arena_of(tensor, arenas.values())
            if arena is not None:
                arenas[arena.scope] = arena
                scopes[number] = arena.scope
    problem = storage_problem(trace, lives, scopes, pairs or Kernels(mod).pairs, regions or {})
    plan = _solved(problem)
    if plan.height > plan.lower_bound:
        plain = storage_problem(trace, lives, scopes, lambda _step: (), regions or {}, opening=False)
        candidates = [(problem, plan), (plain, _solved(plain)), *_stacked(plain, mod, gvar)]
        problem, plan = min(candidates, key=lambda candidate: candidate[1].height)
    return StoragePlan(trace, problem, plan, arenas)


def _solved(problem: StorageProblem) -> Plan:
    plan = solve(problem.problem)
    faults = validate(problem.problem, plan)
    if faults:
        raise InternalError(f"the memory plan of a function is wrong: {faults[0]}")
    return plan


def _stacked(
    plain: StorageProblem, mod: tvm.IRModule, gvar: tvm.ir.GlobalVar
) -> list[tuple[StorageProblem, Plan]]:
    """TVM's own plan where it has one and that is valid."""
    try:
        stock = stock_plan(mod, gvar)
    except RuntimeError:
        return []
    plan = stock.as_plan(plain.problem, plain.groups) if stock else None
    return [(plain, plan)] if plan is not None and not validate(plain.problem, plan) else []


def _arena_of(tensor: StorageTensor, arenas: Collection[StorageArena]) -> StorageArena | None:
    """The arena that ``tensor`` can stand in, with what bounds it: one of ``arenas``, or a new one.

    Offsets are multiples of 64 units, so for small multiples of a large expression gaps would outweigh
    what sharing saves; those go without.
    """
    _, _, device, scope = tensor.call.args
    size = tensor.size
    if size is None or str(scope.value) != "global" or not isinstance(device, tirx.IntImm):
        return None
    if size.unit is not None and size.nbytes < _LEAST_FACTOR:
        return None
    for arena in arenas:
        if arena.device == int(device.value) and _same_unit(arena.unit, size.unit):
            break
    else:
        arena = StorageArena(str(len(arenas)), int(device.value), size.unit)
    return replace(arena, bounded=tuple(dict.fromkeys((*arena.bounded, *size.bounded))))


def _same_unit(a: tvm.ir.Expr | None, b: tvm.ir.Expr | None) -> bool:
    if a is None or b is None:
        return a is b
    return bool(tvm_ffi.structural_equal(a, b))
