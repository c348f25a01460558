"""Finds the allocations that the variables of a lowered Relax function may stand for.

Before   alloc = R.builtin.alloc_tensor(R.shape([2, 6]), ...)
         exp(x, alloc)
         a = alloc;  b = R.reshape(a, R.shape([12]));  t = (b, x);  c = t[0]
After    a, b and c are all of `alloc`, exactly; t[1] is of nothing; `exp` touches `alloc`

Aliases come before liveness: bytes live as long as any view of them does. A value is *exactly* an
allocation where it is all of its bytes from the first on, and only then may a result be written over it;
what an unknown function returns may be any of its arguments. What the function returns, or hands to
something that may keep it, *escapes* and stays out of the arena.

Left to others: when the allocations live (relax_liveness), what a kernel does with its operands
(tir_in_place).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import tvm
from tvm import relax, tirx

from .relax_sizes import Bounds, Size

_SAME_BYTES = (
    "relax.reshape",
    "relax.memory.ensure_zero_offset",
    "relax.builtin.stop_lift_params",
    "vm.builtin.reshape",
    "vm.builtin.ensure_zero_offset",
)
_PART_OF_THE_BYTES = ("relax.memory.view",)
_DYNAMIC_KERNEL = "relax.vm.call_tir_dyn"
_ALLOCATE = "relax.builtin.alloc_tensor"


@dataclass(frozen=True)
class Places:
    """Allocations whose bytes a value may be; ``exact`` if it is all bytes of the only one."""

    tensors: frozenset[int] = frozenset()
    exact: bool = False


Alias = Places | tuple["Alias", ...]
NOWHERE = Places()


@dataclass(frozen=True)
class StorageTensor:
    """One ``R.builtin.alloc_tensor`` that may move into an arena.

    Attributes
    ----------
    var : what it is bound to.
    call : the allocation.
    size : its bytes; None if unknown at the function's entry.
    branches : the branches it is made in, outermost first, as (number of the `if`, which branch).
    """

    var: tvm.ir.Var
    call: tvm.ir.Call
    size: Size | None
    branches: tuple[tuple[int, bool], ...]

    def excludes(self, other: StorageTensor) -> bool:
        """True if no run makes both: they are in different branches of one `if`."""
        mine = dict(self.branches)
        return any(mine.get(number, branch) != branch for number, branch in other.branches)


@dataclass(frozen=True)
class Allocation:
    """The point where an allocation begins to exist."""

    tensor: int


@dataclass(frozen=True)
class StorageStep:
    """A call that reads or writes bytes of allocations.

    Attributes
    ----------
    var : what the call is bound to.
    call : the call.
    args : where each argument is.
    """

    var: tvm.ir.Var
    call: tvm.ir.Call
    args: tuple[Alias, ...]

    @property
    def touches(self) -> frozenset[int]:
        return union(self.args)


@dataclass(frozen=True)
class Branch:
    """An `if`: the condition, and what happens in either case.

    ``joined`` are pairs of allocations, one of each branch, that are the same result.
    """

    touches: frozenset[int]
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...]
    joined: tuple[tuple[int, int], ...]


Node = Allocation | StorageStep | Branch


@dataclass
class Trace:
    """A function as the memory planner sees it."""

    tensors: list[StorageTensor] = field(default_factory=list)
    nodes: tuple[Node, ...] = ()
    escaping: set[int] = field(default_factory=set)
    result: Alias = NOWHERE


def union(aliases: Iterable[Alias]) -> frozenset[int]:
    """All allocations in them."""
    found: frozenset[int] = frozenset()
    for alias in aliases:
        found |= alias.tensors if isinstance(alias, Places) else union(alias)
    return found


def trace_function(mod: tvm.IRModule, function: relax.Function) -> Trace:
    """Follow every value of ``function``, a function of ``mod`` as ``CallTIRRewrite`` leaves it."""
    tracer = _Tracer(mod, Bounds.of(function))
    nodes, result = tracer.sequence(function.body, ())
    tracer.trace.nodes = nodes
    tracer.trace.escaping |= union([result])
    tracer.trace.result = result
    return tracer.trace


class _Tracer:
    def __init__(self, mod: tvm.IRModule, bounds: Bounds) -> None:
        self.mod = mod
        self.bounds = bounds
        self.trace = Trace()
        self.values: dict[tvm.ir.Var, Alias] = {}
        self.branch_count = 0

    def sequence(
        self, seq: relax.SeqExpr, branches: tuple[tuple[int, bool], ...]
    ) -> tuple[tuple[Node, ...], Alias]:
        nodes: list[Node] = []
        for block in seq.blocks:
            for binding in block.bindings:
                self.values[binding.var] = self._bind(binding.var, binding.value, branches, nodes)
        return tuple(nodes), self._leaf(seq.body)

    def _bind(
        self,
        var: tvm.ir.Var,
        value: relax.Expr,
        branches: tuple[tuple[int, bool], ...],
        nodes: list[Node],
    ) -> Alias:
        if isinstance(value, relax.If):
            return self._branch(value, branches, nodes)
        if isinstance(value, relax.Function):
            self._escape(self._leaf(free) for free in relax.analysis.free_vars(value))
            return NOWHERE
        if not isinstance(value, tvm.ir.Call):
            return self._leaf(value)
        name = name_of(value)
        if name == _ALLOCATE:
            size = self.bounds.size_of(value.args[0].values, str(value.args[1].value))
            allocation = Allocation(len(self.trace.tensors))
            nodes.append(allocation)
            self.trace.tensors.append(StorageTensor(var, value, size, branches))
            return Places(frozenset([allocation.tensor]), exact=True)
        args = tuple(self._leaf(arg) for arg in value.args)
        if name in _SAME_BYTES:
            return args[0]
        if name in _PART_OF_THE_BYTES:
            return Places(union(args[:1]))
        nodes.append(StorageStep(var, value, args))
        return self._result(value, name, args)

    def _result(self, call: tvm.ir.Call, name: str, args: tuple[Alias, ...]) -> Alias:
        """Returns the places where the result of a call may be; arguments that it may keep escape."""
        if name == _DYNAMIC_KERNEL or isinstance(call.ty, tvm.ir.PrimType | relax.ShapeType):
            return NOWHERE
        if isinstance(call.op, tvm.ir.GlobalVar):
            is_kernel = isinstance(self.mod[call.op], tirx.PrimFunc)
            return NOWHERE if is_kernel else Places(union(args))
        if isinstance(call.op, relax.ExternFunc):
            return Places(union(args))
        self._escape(args)
        return NOWHERE

    def _branch(self, value: relax.If, branches: tuple[tuple[int, bool], ...], nodes: list[Node]) -> Alias:
        number = self.branch_count
        self.branch_count += 1
        then, then_result = self.sequence(value.true_branch, (*branches, (number, True)))
        otherwise, other_result = self.sequence(value.false_branch, (*branches, (number, False)))
        joined = tuple(_joined(then_result, other_result))
        nodes.append(Branch(union([self._leaf(value.cond)]), then, otherwise, joined))
        return _merged(then_result, other_result)

    def _leaf(self, expr: relax.Expr) -> Alias:
        if isinstance(expr, tvm.ir.Var):
            return self.values.get(expr, NOWHERE)
        if isinstance(expr, tvm.ir.Tuple):
            return tuple(self._leaf(item) for item in expr.fields)
        if isinstance(expr, tvm.ir.TupleGetItem):
            whole = self._leaf(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, tuple) else whole
        return NOWHERE

    def _escape(self, aliases: Iterable[Alias]) -> None:
        self.trace.escaping |= union(aliases)


def name_of(call: tvm.ir.Call) -> str:
    """The name of an operator or of an external function, '' for anything else."""
    if isinstance(call.op, tvm.ir.Op):
        return str(call.op.name)
    return str(call.op.global_symbol) if isinstance(call.op, relax.ExternFunc) else ""


def _merged(a: Alias, b: Alias) -> Alias:
    """Joins the places of two values into those of a value that is either of them."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(_merged(x, y) for x, y in zip(a, b, strict=True))
    return Places(union([a, b]))


def _joined(a: Alias, b: Alias) -> Iterable[tuple[int, int]]:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for x, y in zip(a, b, strict=True):
            yield from _joined(x, y)
    elif isinstance(a, Places) and isinstance(b, Places) and a.exact and b.exact:
        yield min(a.tensors), min(b.tensors)
