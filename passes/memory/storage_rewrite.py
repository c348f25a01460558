"""``StorageRewrite``: one arena for each function instead of a pool of tokens.

Before   alloc = R.builtin.alloc_tensor(R.shape([2, 6]), R.dtype("float32"), 0)       (CallTIRRewrite)
         exp(x, alloc)
After    arena = R.memory.alloc_storage(R.shape([4096]), 0, "global", R.dtype("uint8"))
         view = R.memory.alloc_tensor(arena, 128, R.shape([2, 6]), R.dtype("float32"), 0)
         alloc = R.memory.ensure_zero_offset(view)
         exp(x, alloc)

Takes the place of TVM's ``StaticPlanBlockMemory``, after ``CallTIRRewrite``, for modules with regions or
without. Aliases, liveness over control flow, in-place kernels and the problem they make are in the files
beside this one; the offsets come from ``core.allocation``, and every plan is validated.

- The arena is allocated at the function's entry, so it dominates all uses.
- TIR kernels take no byte offset: ``ensure_zero_offset`` moves it into the pointer, without a copy where
  the offset is a multiple of 64, as all are. Tensors of one type at one offset share one view.
- Symbolic sizes: with upper bounds for all their variables (``tir_var_upper_bound``) they are planned at
  their largest, and the arena is empty, so that allocation fails, where a bound is exceeded; else sizes
  that are multiples of one expression have an arena of their own, planned in its units; else
  ``LowerAllocTensor`` allocates them one by one, as it does what escapes.

Left to others: two-dimensional texture scopes, which keep their own allocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import relax, tirx

from tvm_mxplan.core.allocation import Plan, solve, validate
from tvm_mxplan.errors import InternalError

from .relax_aliases import Step, Trace, trace_function
from .relax_liveness import StorageProblem, find_lives, storage_problem
from .tir_in_place import in_place_pairs, write_in_place


@dataclass(frozen=True)
class Arena:
    """What the allocations of one arena have in common.

    Attributes
    ----------
    scope : its name in the allocation problem.
    device : index of the virtual device.
    unit : the expression that sizes and offsets are multiples of; None for bytes.
    bounded : variables whose upper bounds its size relies on, each with its bound.
    """

    scope: str
    device: tvm.ir.Expr
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
    arenas: dict[str, Arena]

    def placements(self) -> dict[tvm.ir.Var, tuple[Arena, int]]:
        """Arena and offset by the variable of the allocation."""
        found = {}
        pairs = zip(self.problem.problem.items, self.problem.groups, self.plan.offsets, strict=True)
        for item, group, offset in pairs:
            for number in group:
                found[self.trace.tensors[number].var] = (self.arenas[item.scope], offset)
        return found


def plan_storage(mod: tvm.IRModule, function: relax.Function, kernels: Kernels | None = None) -> StoragePlan:
    """Plan ``function``, a function of ``mod``; the IR stays as it is."""
    kernels = Kernels(mod) if kernels is None else kernels
    trace = trace_function(mod, function)
    lives = find_lives(trace)
    arenas: list[Arena] = []
    of_tensor = {}
    for number, tensor in enumerate(trace.tensors):
        wanted = number not in trace.escaping and lives.intervals[number] and tensor.size is not None
        if wanted and str(tensor.call.args[3].value) == "global":
            of_tensor[number] = _arena_of(tensor, arenas)
    problem = storage_problem(trace, lives, of_tensor, kernels.pairs)
    plan = solve(problem.problem)
    faults = validate(problem.problem, plan)
    if faults:
        raise InternalError(f"the memory plan of a function is wrong: {faults[0]}")
    return StoragePlan(trace, problem, plan, {arena.scope: arena for arena in arenas})
