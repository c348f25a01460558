"""Checks a rewritten function against the one it was made from; shares nothing with what planned it.

Before and After are walked together, forwards, along paths through the branches, with a shadow of the
memory: who wrote which bytes last. A call must find the bytes of each operand as their own allocation left
them; then it claims those of what it touches for the first time. The planner works backwards over sets of
paths and trusts its aliases; here every path is followed as a run would follow it.

Also: arenas are allocated at the entry and hold what stands in them, everything begins at a multiple of 64
bytes, what is returned stands outside, and an operand whose bytes the result takes is no argument any more.

What it does not check: that an in-place kernel computes what the kernel does (tir_in_place proves that).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

import tvm
import tvm_ffi
from tvm import relax, tirx

from tvm_mxplan.core.allocation.alignment import ALIGNMENT, HUGE_PAGE
from tvm_mxplan.core.program.program import Program

from .relax_sizes import Bounds
from .storage_check_regions import Bytes, RegionRun, Roots

_PATHS = 8
_SAME_TENSOR = ("relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset", "vm.builtin.reshape")

Value = Roots | tuple["Value", ...]


def check_storage(
    before: relax.Function, after: relax.Function, programs: Mapping[str, Program] | None = None
) -> list[str]:
    """Reasons why ``after`` does not compute what ``before`` does; empty if there are none.

    Both bind what they have in common to the same variables.  ``programs`` are those of the regions that
    ``after`` lends all of an arena, by the name they are called by.
    """
    layout = _Layout(before, after, programs or {})
    reasons = list(layout.reasons)
    for decisions in _paths(_count_branches(before.body)):
        if not reasons:
            reasons += _Run(layout, decisions).function(before)
    return reasons


class _Layout:
    """The places of the rewritten function's allocations, read from its text."""

    def __init__(
        self, before: relax.Function, after: relax.Function, programs: Mapping[str, Program]
    ) -> None:
        self.programs = programs
        self.bounds = Bounds.of(before)
        self.regions: dict[tvm.ir.Var, Bytes] = {}
        self.calls: dict[tvm.ir.Var, tvm.ir.Call] = {}
        self.reasons: list[str] = []
        self._sizes: dict[tvm.ir.Var, tvm.ir.Expr] = {}
        self._sequence(after.body, frozenset(after.params), at_entry=True)

    def _sequence(self, seq: relax.SeqExpr, scope: Roots, *, at_entry: bool) -> None:
        defined = set(scope)
        for block in seq.blocks:
            for binding in block.bindings:
                self._binding(binding.var, binding.value, frozenset(defined), at_entry=at_entry)
                defined.add(binding.var)

    def _binding(self, var: tvm.ir.Var, value: relax.Expr, scope: Roots, *, at_entry: bool) -> None:
        if isinstance(value, relax.If):
            self._sequence(value.true_branch, scope, at_entry=False)
            self._sequence(value.false_branch, scope, at_entry=False)
        elif isinstance(value, tvm.ir.Var) and value in self.regions:
            self._alias(var, value, scope)
        elif isinstance(value, tvm.ir.Call):
            self.calls[var] = value
            name = str(getattr(value.op, "name", "") or getattr(value.op, "global_symbol", ""))
            if name == "relax.memory.alloc_storage":
                self._sizes[var] = value.args[0].values[0]
                if not at_entry:
                    self.reasons.append(f"{var.name} is allocated in a branch, not at the entry")
            elif name == "tvm_mxplan.arena.align":
                self._aligned(var, value, scope)
            elif name in ("relax.memory.alloc_tensor", "tvm_mxplan.arena.tensor"):
                self._region(var, value, scope)
            elif name == "relax.memory.ensure_zero_offset" and value.args[0] in self.regions:
                self._alias(var, value.args[0], scope)

    def _alias(self, var: tvm.ir.Var, source: tvm.ir.Var, scope: Roots) -> None:
        self.regions[var] = self.regions[source]
        if source not in scope:
            self.reasons.append(f"{var.name} stands at {source.name}, which does not dominate it")

    def _aligned(self, var: tvm.ir.Var, call: tvm.ir.Call, scope: Roots) -> None:
        """An arena at a huge page inside of a longer one, wherever that begins."""
        longer, size = call.args
        self._sizes[var] = size
        self.regions[var] = Bytes(var, 0, int(size.value))
        if longer not in scope or longer not in self.regions:
            self.reasons.append(f"{var.name} stands in what does not dominate it")
        elif self.regions[longer].high - self.regions[longer].low < int(size.value) + HUGE_PAGE:
            self.reasons.append(f"{var.name} leaves {longer.name} where that begins behind a huge page")

    def _region(self, var: tvm.ir.Var, call: tvm.ir.Call, scope: Roots) -> None:
        storage, offset, shape, dtype = call.args[:4]
        size = self.bounds.size_of(shape.values, str(dtype.value))
        if storage not in scope or storage not in self._sizes:
            self.reasons.append(f"{var.name} stands in a storage that does not dominate it")
        elif size is None:
            self.reasons.append(f"the size of {var.name} is unknown at the entry")
        else:
            low = _in_units(offset, size.unit)
            height = _in_units(self._sizes[storage], size.unit)
            self.regions[var] = Bytes(storage, low, low + size.nbytes)
            if low % ALIGNMENT or not 0 <= low <= low + size.nbytes <= height:
                self.reasons.append(
                    f"{var.name} takes bytes {low} to {low + size.nbytes} of a storage of {height}, "
                    f"expected a multiple of {ALIGNMENT} and an end inside"
                )


class _Run:
    """One path through a function, with a shadow of the memory."""

    def __init__(self, layout: _Layout, decisions: Iterator[bool]) -> None:
        self.layout = layout
        self.decisions = decisions
        self.values: dict[tvm.ir.Var, Value] = {}
        self.intact: dict[tvm.ir.Var, Bytes] = {}
        self.touched: set[tvm.ir.Var] = set()
        self.reasons: list[str] = []

    def function(self, function: relax.Function) -> list[str]:
        for root in _flat(self._sequence(function.body)):
            if root in self.layout.regions:
                self.reasons.append(f"{root.name} is returned and stands in an arena")
        return self.reasons

    def _sequence(self, seq: relax.SeqExpr) -> Value:
        for block in seq.blocks:
            for binding in block.bindings:
                self.values[binding.var] = self._binding(binding.var, binding.value)
        return self._value(seq.body)

    def _binding(self, var: tvm.ir.Var, value: relax.Expr) -> Value:
        if isinstance(value, relax.If):
            self._touch(var, _flat(self._value(value.cond)))
            return self._sequence(value.true_branch if next(self.decisions) else value.false_branch)
        if isinstance(value, relax.Function):
            return frozenset().union(*(_flat(self._value(free)) for free in relax.analysis.free_vars(value)))
        if not isinstance(value, tvm.ir.Call):
            return self._value(value)
        name = getattr(value.op, "name", "") or getattr(value.op, "global_symbol", "")
        if str(name) == "relax.builtin.alloc_tensor":
            return frozenset([var])
        if str(name) in self.layout.programs:
            return self._region(self.layout.calls[var], value, self.layout.programs[str(name)])
        roots = frozenset().union(*(_flat(self._value(arg)) for arg in value.args))
        if str(name) in _SAME_TENSOR:
            return self._value(value.args[0])
        self._touch(var, roots)
        # Numbers and shapes are copies.
        return frozenset() if isinstance(value.ty, tvm.ir.PrimType | relax.ShapeType) else roots

    def _value(self, expr: relax.Expr) -> Value:
        if isinstance(expr, tvm.ir.Var):
            return self.values.get(expr, frozenset())
        if isinstance(expr, tvm.ir.Tuple):
            return tuple(self._value(field) for field in expr.fields)
        if isinstance(expr, tvm.ir.TupleGetItem):
            whole = self._value(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, tuple) else whole
        return frozenset()

    def _region(self, call: tvm.ir.Call, value: tvm.ir.Call, program: Program) -> Value:
        """A call whose last argument is all of an arena, where before it was an allocation."""
        *arguments, _ = (_flat(self._value(arg)) for arg in value.args)
        arena = self.layout.regions.get(call.args[-1])
        if arena is None:
            self.reasons.append(f"{program.name} is lent no arena")
        else:
            placed = self.layout.regions
            run = RegionRun(program, arena, arguments, placed, self.touched, self.intact)
            self.reasons += run.run()
        return frozenset().union(*arguments)

    def _touch(self, var: tvm.ir.Var, roots: Roots) -> None:
        """A call reads what was touched before, then claims what was not."""
        placed = [root for root in roots if root in self.layout.regions]
        reads = [root for root in placed if root in self.touched]
        for root in reads:
            if root not in self.intact:
                self.reasons.append(f"{var.name} reads {root.name}, whose bytes something else has taken")
        for root in placed:
            if root not in self.touched:
                self._claim(var, root, reads)

    def _claim(self, var: tvm.ir.Var, root: tvm.ir.Var, reads: Sequence[tvm.ir.Var]) -> None:
        region = self.layout.regions[root]
        for other, taken in list(self.intact.items()):
            if not region.overlaps(taken):
                continue
            del self.intact[other]
            if other in reads and (region != taken or self._passes(var, other)):
                self.reasons.append(f"{var.name} writes {root.name} over its own operand {other.name}")
        self.touched.add(root)
        self.intact[root] = region

    def _passes(self, var: tvm.ir.Var, root: tvm.ir.Var) -> bool:
        """True if the rewritten call still takes ``root``."""
        call = self.layout.calls[var]
        return any(root in _flat(self._value(arg)) for arg in call.args)


def _flat(value: Value) -> Roots:
    if isinstance(value, tuple):
        return frozenset().union(*(_flat(item) for item in value))
    return value


def _in_units(expr: tvm.ir.Expr, unit: tvm.ir.Expr | None) -> int:
    """The number of units in an offset or a size; -1 if it is no such thing."""
    while isinstance(expr, tirx.Select):
        expr = expr.true_value
    if unit is not None and tvm_ffi.structural_equal(expr, unit):
        return 1
    if unit is not None and isinstance(expr, tirx.Mul) and tvm_ffi.structural_equal(expr.a, unit):
        return int(expr.b.value)
    if isinstance(expr, tirx.IntImm) and (unit is None or int(expr.value) == 0):
        return int(expr.value)
    return -1


def _count_branches(seq: relax.SeqExpr) -> int:
    values = [binding.value for block in seq.blocks for binding in block.bindings]
    return sum(
        1 + _count_branches(value.true_branch) + _count_branches(value.false_branch)
        for value in values
        if isinstance(value, relax.If)
    )


def _paths(branches: int) -> Iterator[Iterator[bool]]:
    """Decisions for each `if` of a run: all there are, or some where those are too many."""
    if 2**branches <= _PATHS:
        yield from (iter(decisions) for decisions in itertools.product((True, False), repeat=branches))
        return
    rng = random.Random(0)
    yield itertools.repeat(True)
    yield itertools.repeat(False)
    for _ in range(_PATHS - 2):
        yield iter([rng.random() < 0.5 for _ in range(branches)])
