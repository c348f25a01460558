"""``StorageRewrite``: one arena for each function instead of a pool of tokens.

Before   alloc = R.builtin.alloc_tensor(R.shape([2, 6]), R.dtype("float32"), 0)       (CallTIRRewrite)
         exp(x, alloc)
After    arena = R.memory.alloc_storage(R.shape([4096]), 0, "global", R.dtype("uint8"))
         view = R.memory.alloc_tensor(arena, 128, R.shape([2, 6]), R.dtype("float32"), 0)
         alloc = R.memory.ensure_zero_offset(view)
         exp(x, alloc)

Takes the place of TVM's ``StaticPlanBlockMemory``, behind ``CallTIRRewrite``, for modules with regions and
without.

- The arena is allocated at the function's entry, so it dominates all uses, also those in branches.
- Tensors of one type at one offset share one view.
- A kernel that writes its result over an operand is one that names a single buffer (tir_in_place).
- A region that works in an arena of the function gets all of it, and a program with new offsets
  (region_calls).
- Functions of one size of a named batch each (passes/sizes) run one at a time: their arenas are all as large
  as the largest, so that the VM hands each the same storage.
- Symbolic sizes: with upper bounds for all their variables (``tir_var_upper_bound``) they are planned at
  their largest, and where a bound is exceeded the arena is empty, so that allocation fails; else sizes
  that are large multiples of one expression have an arena of their own, planned in its units; else
  ``LowerAllocTensor`` allocates them one by one, as it does what escapes.

The result is checked along paths through the function, by code that shares nothing with the planner
(storage_check).

Left to others: what lives where (storage_plan), how an arena is made (arena_bindings).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.core.program.program import Program
from tvm_mxplan.errors import InternalError

from ..sizes.named_batch import is_sized
from .arena_bindings import ArenaBindings
from .region_calls import regions_of, with_programs
from .storage_check import check_storage
from .storage_plan import Kernels, StorageArena, StoragePlan, plan_storage
from .tir_in_place import write_in_place

Observer = Callable[[str, StoragePlan], None]
Views = dict[tuple[object, ...], tvm.ir.Var]


@tvm.transform.module_pass(opt_level=0, name="StorageRewrite")
class StorageRewrite:
    """Module pass; see the module's text.

    Parameters
    ----------
    observe : is told the name and the plan of each function.
    """

    def __init__(self, observe: Observer | None = None) -> None:
        self.observe = observe

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        builder = relax.BlockBuilder(mod.clone())
        kernels = Kernels(mod)
        regions = regions_of(mod)
        replaced: set[tvm.ir.GlobalVar] = set()
        programs: dict[str, Program] = {}
        functions = {g: one for g, one in mod.functions.items() if isinstance(one, relax.Function)}
        plans = {gvar: plan_storage(mod, gvar, kernels.pairs, regions) for gvar in functions}
        sized = _largest([plans[gvar] for gvar, function in functions.items() if is_sized(function)])
        for gvar, function in functions.items():
            plan = plans[gvar]
            rewriter = _Rewriter(plan, mod, builder, sized if is_sized(function) else {})
            rewritten = rewriter.function(function)
            moved = plan.programs()
            faults = check_storage(function, rewritten, moved)
            if faults:
                raise InternalError(f"{gvar.name_hint}: the rewritten memory is wrong: {faults[0]}")
            builder.update_func(gvar, rewritten)
            if self.observe is not None:
                self.observe(gvar.name_hint, plan)
            replaced |= rewriter.replaced
            programs |= moved
        result = relax.transform.Normalize()(builder.get())
        return with_programs(_without_unused(result, replaced), programs)


class _Rewriter:
    """Writes a plan into its function, in arenas of at least ``least`` bytes by their device."""

    def __init__(
        self, plan: StoragePlan, mod: tvm.IRModule, builder: relax.BlockBuilder, least: Mapping[int, int]
    ) -> None:
        opened, closed = plan.problem.opened, plan.problem.closed
        self.placements = plan.placements()
        self.in_place = plan.problem.in_place
        self.lends = {call.step.var: call.scope for call in opened}
        self.unused = {plan.trace.tensors[call.lent].var: call.scope for call in opened}
        regions = {call.scope for call in (*opened, *closed)}
        self.arenas = {
            arena.scope: ArenaBindings(arena, _height(plan, arena, least), regions=arena.scope in regions)
            for arena in plan.arenas.values()
            if arena.scope in plan.plan.heights
        }
        self.mod = mod
        self.builder = builder
        self.replaced: set[tvm.ir.GlobalVar] = set()

    def function(self, function: relax.Function) -> relax.Function:
        if not self.placements and not self.lends:
            return function
        body = self._sequence(function.body, {})
        entry = [binding for arena in self.arenas.values() for binding in arena.entry]
        body = relax.SeqExpr([relax.BindingBlock(entry), *body.blocks], body.body)
        return relax.Function(
            function.params, body, function.ret_ty, function.is_pure, function.attrs, function.span
        )

    def _sequence(self, seq: relax.SeqExpr, before: Views) -> relax.SeqExpr:
        """``seq`` with allocations placed; views made ``before`` may be used again."""
        blocks: list[relax.BindingBlock] = []
        views = dict(before)
        for block in seq.blocks:
            bindings: list[relax.Binding] = []
            for binding in block.bindings:
                if binding.var in self.unused:
                    # No longer an argument, but still a field in the tuple of its call's results.
                    arena = self.arenas[self.unused[binding.var]]
                    bindings.append(relax.VarBinding(binding.var, arena.whole))
                elif binding.var in self.placements:
                    new_var = relax.DataflowVar if isinstance(block, relax.DataflowBlock) else relax.Var
                    seen = views.setdefault(self._seen(binding), binding.var)
                    bindings += self._place(binding, seen, new_var)
                else:
                    bindings.append(self._rewrite(binding, views))
            blocks.append(type(block)(bindings))
        return relax.SeqExpr(blocks, seq.body)

    def _seen(self, binding: relax.VarBinding) -> tuple[object, ...]:
        """The place, shape and type by which the tensor of an allocation is known."""
        shape, dtype, _, _ = binding.value.args
        arena, offset = self.placements[binding.var]
        return arena.scope, offset, tvm_ffi.StructuralKey(shape), str(dtype.value)

    def _place(
        self, binding: relax.VarBinding, seen: tvm.ir.Var, new_var: type[tvm.ir.Var]
    ) -> list[relax.Binding]:
        """The bindings that put an allocation where the plan says, or on ``seen``, which stands there."""
        if not seen.same_as(binding.var):
            return [relax.VarBinding(binding.var, seen)]
        arena, offset = self.placements[binding.var]
        return self.arenas[arena.scope].tensor(binding, offset, new_var)

    def _rewrite(self, binding: relax.Binding, views: Views) -> relax.Binding:
        value = binding.value
        if isinstance(value, relax.If):
            then = self._sequence(value.true_branch, views)
            otherwise = self._sequence(value.false_branch, views)
            return relax.VarBinding(binding.var, relax.If(value.cond, then, otherwise, value.span))
        if binding.var in self.lends:
            args = [*value.args[:-1], self.arenas[self.lends[binding.var]].whole]
            call = tvm.ir.Call(value.op, args, value.attrs, value.ty_args, value.span, value.ty)
            return relax.VarBinding(binding.var, call)
        if binding.var in self.in_place:
            return relax.VarBinding(binding.var, self._in_place_call(value, *self.in_place[binding.var]))
        return binding

    def _in_place_call(self, call: tvm.ir.Call, source: int, destination: int) -> tvm.ir.Call:
        kernel = write_in_place(self.mod[call.op], source, destination)
        gvar = self.builder.add_func(kernel, f"{call.op.name_hint}_in_place")
        self.replaced.add(call.op)
        args = [arg for at, arg in enumerate(call.args) if at != source]
        return tvm.ir.Call(gvar, args, call.attrs, call.ty_args, call.span, call.ty)


def _height(plan: StoragePlan, arena: StorageArena, least: Mapping[int, int]) -> int:
    height = plan.plan.heights[arena.scope]
    return height if arena.unit is not None else max(height, least.get(arena.device, 0))


def _largest(plans: Sequence[StoragePlan]) -> dict[int, int]:
    """The bytes of the largest arena of several functions, by device."""
    largest: dict[int, int] = {}
    for plan in plans:
        for arena in plan.arenas.values():
            if arena.unit is None and arena.scope in plan.plan.heights:
                height = plan.plan.heights[arena.scope]
                largest[arena.device] = max(height, largest.get(arena.device, 0))
    return largest


def _without_unused(mod: tvm.IRModule, kernels: set[tvm.ir.GlobalVar]) -> tvm.IRModule:
    """The module without those of ``kernels`` that nothing refers to any more."""
    used: set[tvm.ir.GlobalVar] = set()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GlobalVar):
            used.add(expr)

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    for gvar in kernels - used:
        if not (mod[gvar].attrs and "global_symbol" in mod[gvar].attrs):
            del mod[gvar]
    return mod
