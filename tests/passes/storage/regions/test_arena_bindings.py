"""Arenas at huge pages: where they are made, what the runtime refuses, and what the checker does."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan.core.allocation.alignment import HUGE_PAGE
from tvm_mxplan.passes.storage.arena_bindings import ALIGN, TENSOR, ArenaBindings
from tvm_mxplan.passes.storage.storage_check import check_storage
from tvm_mxplan.passes.storage.storage_plan import StorageArena

PLAIN = StorageArena("0", 0, None)


def names(bindings: list[relax.VarBinding]) -> list[str]:
    return [str(getattr(b.value.op, "name", "") or b.value.op.global_symbol) for b in bindings]


def allocation() -> relax.VarBinding:
    shape = relax.ShapeExpr([3, 5])
    call = relax.op.builtin.alloc_tensor(shape, "float32", 0)
    return relax.VarBinding(relax.Var("a", relax.TensorType(shape, "float32")), call)


def test_an_arena_of_regions_begins_at_a_huge_page() -> None:
    arena = ArenaBindings(PLAIN, 2 * HUGE_PAGE, regions=True)
    made = arena.tensor(allocation(), 128, relax.Var)
    assert names(made) == [TENSOR]
    assert all(
        str(binding.value.ty_args[0]) == str(binding.var.ty) for binding in (made[-1], arena.entry[-1])
    )
    assert names(arena.entry) == ["relax.memory.alloc_storage", "relax.memory.alloc_tensor", ALIGN]
    assert int(arena.entry[0].value.args[0].values[0]) == 3 * HUGE_PAGE


@pytest.mark.parametrize("height, regions", [(2 * HUGE_PAGE, False), (HUGE_PAGE - 64, True)])
def test_others_are_tvms_own(height: int, regions: bool) -> None:
    """Functions without regions need nothing of ours when they run; small arenas gain nothing."""
    arena = ArenaBindings(PLAIN, height, regions=regions)
    assert names(arena.tensor(allocation(), 128, relax.Var)) == [
        "relax.memory.alloc_tensor",
        "relax.memory.ensure_zero_offset",
    ]
    assert names(arena.entry) == ["relax.memory.alloc_storage"]
    assert int(arena.entry[0].value.args[0].values[0]) == height


def test_sizes_that_the_run_decides_are_tvms_own() -> None:
    n = tvm.tirx.Var("n", "int64")
    for arena in (StorageArena("0", 0, n), StorageArena("0", 0, None, ((n, 8),))):
        made = ArenaBindings(arena, 2 * HUGE_PAGE, regions=True).tensor(allocation(), 0, relax.Var)
        assert names(made) == ["relax.memory.alloc_tensor"]


def with_entry(arena: ArenaBindings, *made: relax.VarBinding) -> relax.Function:
    """A function of the arena's bindings and those of ``made``."""
    _ = arena.whole
    block = relax.BindingBlock([*arena.entry, *made])
    return relax.Function([], relax.SeqExpr([block], relax.Tuple([])), relax.TupleType([]), is_pure=False)


def test_the_checker_knows_both_forms() -> None:
    """A region that does not fit, wherever the longer one begins, is refused."""
    before = relax.Function([], relax.SeqExpr([], relax.Tuple([])), relax.TupleType([]), is_pure=False)
    arena = ArenaBindings(PLAIN, HUGE_PAGE, regions=True)
    right = with_entry(arena, *arena.tensor(allocation(), HUGE_PAGE - 64, relax.Var))
    assert check_storage(before, right) == []
    behind = with_entry(arena, *arena.tensor(allocation(), HUGE_PAGE, relax.Var))
    assert "expected a multiple of 64 and an end inside" in check_storage(before, behind)[0]
    storage, longer, aligned = arena.entry
    call = aligned.value
    args = [call.args[0], tvm.tirx.IntImm("int64", HUGE_PAGE + 64)]
    larger = relax.Call(call.op, args, ty_args=call.ty_args)
    bindings = [storage, longer, relax.VarBinding(aligned.var, larger)]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], relax.Tuple([]))
    short = relax.Function([], body, relax.TupleType([]), is_pure=False)
    assert check_storage(before, short) == ["lent leaves longer where that begins behind a huge page"]


# --- the runtime -------------------------------------------------------------------------------------------


def address(tensor: tvm.runtime.Tensor) -> int:
    return np.from_dlpack(tensor).__array_interface__["data"][0]


def arena_of(height: int) -> tuple[tvm.runtime.Tensor, tvm.runtime.Tensor]:
    longer = tvm.runtime.empty((height + HUGE_PAGE,), "uint8")
    return longer, tvm.get_global_func(ALIGN)(longer, height)


def test_tensors_stand_where_they_should() -> None:
    longer, arena = arena_of(HUGE_PAGE)
    assert address(arena) % HUGE_PAGE == 0
    assert address(longer) <= address(arena) < address(longer) + HUGE_PAGE
    tensor = tvm.get_global_func(TENSOR)(arena, 128, tvm.runtime.ShapeTuple([3, 5]), "float32")
    assert address(tensor) == address(arena) + 128
    assert (tensor.shape, str(tensor.dtype)) == ((3, 5), "float32")


def test_views_keep_the_arena_alive() -> None:
    tensor = tvm.get_global_func(TENSOR)(arena_of(HUGE_PAGE)[1], 0, tvm.runtime.ShapeTuple([4]), "float32")
    np.from_dlpack(tensor)[...] = 7
    assert tensor.numpy().tolist() == [7] * 4


def test_what_does_not_fit_is_refused() -> None:
    longer, arena = arena_of(HUGE_PAGE)
    with pytest.raises(ValueError, match=r"an arena of .* bytes does not fit into"):
        tvm.get_global_func(ALIGN)(longer, 2 * HUGE_PAGE + 64)
    for offset in (HUGE_PAGE - 15, -64):
        with pytest.raises(ValueError, match=r"16 bytes at offset .* leave the arena"):
            tvm.get_global_func(TENSOR)(arena, offset, tvm.runtime.ShapeTuple([4]), "float32")
