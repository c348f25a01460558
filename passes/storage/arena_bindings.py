"""The bindings that make an arena and the tensors in it.

As TVM has them, for functions that need nothing of ours when they run:

    arena = R.memory.alloc_storage(R.shape([4096]), 0, "global", "uint8")
    view = R.memory.alloc_tensor(arena, 128, R.shape([2, 6]), "float32", 0)
    alloc = R.memory.ensure_zero_offset(view)

TIR kernels refuse byte offsets: ``ensure_zero_offset`` moves them into the pointer, without a copy where
they are multiples of 64, as all are.  An arena that regions work in and that can hold a huge page begins at
one, as the arenas of regions alone do; it is a part of something longer, wherever that begins:

    longer = R.memory.alloc_tensor(storage, 0, R.shape([4194304 + 2097152]), "uint8", 0)
    arena = "tvm_mxplan.arena.align"(longer, 4194304)
    alloc = "tvm_mxplan.arena.tensor"(arena, 128, R.shape([2, 6]), "float32")

Only addresses are longer: pages that nobody touches take no memory.  TVM's VM keeps the storage from call to
call either way.

Left to others: what stands where (storage_plan), what lends an arena to whom (storage_rewrite).
"""

from __future__ import annotations

from functools import cached_property

import tvm
from tvm import relax, tirx
from tvm.relax.op import memory

from tvm_mxplan.core.allocation.alignment import HUGE_PAGE

from .storage_plan import StorageArena

ALIGN = "tvm_mxplan.arena.align"
TENSOR = "tvm_mxplan.arena.tensor"


class ArenaBindings:
    """One arena of a function.

    Parameters
    ----------
    arena, height : what it is, and how long.
    regions : whether regions work in it.

    Attributes
    ----------
    entry : the bindings that make it, for the function's entry; complete when all else was asked for.
    """

    def __init__(self, arena: StorageArena, height: int, *, regions: bool) -> None:
        self.entry: list[relax.VarBinding] = []
        self._arena = arena
        self._height = height
        self._storage = relax.Var("arena", relax.AnyType())
        self._aligned = regions and height >= HUGE_PAGE and arena.unit is None and not arena.bounded
        size = _size(arena, height + HUGE_PAGE if self._aligned else height)
        storage = memory.alloc_storage(relax.ShapeExpr([size]), arena.device, "global", "uint8")
        self._bind(self._storage, storage)

    @cached_property
    def whole(self) -> tvm.ir.Var:
        """All of it as a tensor."""
        if not self._aligned:
            return self._bytes("lent", self._height)
        longer = self._bytes("longer", self._height + HUGE_PAGE)
        whole = relax.Var("lent", relax.TensorType([self._height], "uint8"))
        return self._bind(whole, _call(ALIGN, [longer, _int(self._height)], whole.ty))

    def tensor(
        self, binding: relax.VarBinding, offset: int, new_var: type[tvm.ir.Var]
    ) -> list[relax.VarBinding]:
        """The bindings that put an allocation at ``offset``; ``new_var`` makes the variables between."""
        var = binding.var
        shape, dtype, device, _ = binding.value.args
        at = _int(offset)
        if self._aligned:
            return [relax.VarBinding(var, _call(TENSOR, [self.whole, at, shape, dtype], var.ty))]
        if self._arena.unit is not None:
            at = self._arena.unit * at
        tensor = memory.alloc_tensor(self._storage, at, shape, dtype, device)
        if offset == 0:
            return [relax.VarBinding(var, tensor)]
        view = new_var("view", var.ty)
        return [relax.VarBinding(view, tensor), relax.VarBinding(var, memory.ensure_zero_offset(view))]

    def _bytes(self, name: str, nbytes: int) -> tvm.ir.Var:
        """The first ``nbytes`` of the storage as a tensor."""
        shape = relax.ShapeExpr([nbytes])
        var = relax.Var(name, relax.TensorType(shape, "uint8"))
        return self._bind(
            var, memory.alloc_tensor(self._storage, _int(0), shape, "uint8", self._arena.device)
        )

    def _bind(self, var: tvm.ir.Var, value: relax.Expr) -> tvm.ir.Var:
        self.entry.append(relax.VarBinding(var, value))
        return var


def _size(arena: StorageArena, height: int) -> tvm.ir.Expr:
    size = _int(height)
    if arena.unit is not None:
        return arena.unit * size
    for var, bound in arena.bounded:
        size = tirx.Select(var <= tirx.IntImm(var.ty.dtype, bound), size, _int(0))
    return size


def _call(name: str, args: list[relax.Expr], ty: tvm.ir.Type) -> relax.Call:
    return relax.Call(relax.ExternFunc(name), args, ty_args=[ty])


def _int(value: int) -> tirx.IntImm:
    return tirx.IntImm("int64", value)
