"""A function's arena: what its kernels hand on and what its regions keep in it, reported and read back."""

from __future__ import annotations

from ..core.allocation import Item, Plan, Problem, Rectangle, lower_bound
from ..core.allocation.token_reuse import token_reuse
from ..passes.storage.storage_plan import StoragePlan
from .arena import Arena
from .memory_report import MemoryItem, MemoryReport, proof_text

_KINDS = ("between", "arenas", "values", "scratchpads")


def function_report(name: str, planned: StoragePlan) -> MemoryReport | None:
    """Reports the memory of a lowered function; None if it needs no arena of fixed size."""
    items = tuple(
        MemoryItem(item.name, kind, item.extent, item.birth, item.death, offset, _parts(item))
        for item, kind, offset in zip(
            planned.problem.problem.items, _kinds(planned), planned.plan.offsets, strict=True
        )
        if planned.arenas[item.scope].unit is None
    )
    if not items:
        return None
    tensors = tuple(
        item
        for item, kind in zip(planned.problem.problem.items, _kinds(planned), strict=True)
        if kind != "scratchpads" and planned.arenas[item.scope].unit is None
    )
    kinds = {kind: sum(item.nbytes for item in items if item.kind == kind) for kind in _KINDS}
    kinds = {kind: nbytes for kind, nbytes in kinds.items() if nbytes}
    scopes = [arena.scope for arena in planned.arenas.values() if arena.unit is None]
    height = sum(planned.plan.heights.get(scope, 0) for scope in scopes)
    bound = sum(planned.plan.lower_bounds.get(scope, 0) for scope in scopes)
    return MemoryReport(
        name,
        kinds,
        height,
        bound,
        proof_text(planned.plan),
        token_reuse(planned.problem.problem),
        sum(item.nbytes for item in items),
        items,
        tensors=lower_bound(Problem(tensors)),
    )


def function_arena(memory: MemoryReport) -> Arena:
    """The problem and the plan of a function, from its report."""
    items = tuple(
        Item(item.name, tuple(Rectangle(*part) for part in item.parts or [_whole(item)]))
        for item in memory.items
    )
    offsets = tuple(item.offset for item in memory.items)
    plan = Plan(offsets, {"global": memory.height}, {"global": memory.lower_bound})
    kinds = tuple(item.kind for item in memory.items)
    names = tuple((item.name,) * len(item.rectangles) for item in items)
    return Arena(memory.region, Problem(items), plan, kinds, (), names)


def _whole(item: MemoryItem) -> tuple[int, int, int, int]:
    return item.birth, item.death, 0, item.nbytes


def _parts(item: Item) -> tuple[tuple[int, int, int, int], ...]:
    if len(item.rectangles) == 1:
        return ()
    return tuple((part.birth, part.death, part.offset, part.nbytes) for part in item.rectangles)


def _kinds(planned: StoragePlan) -> list[str]:
    lent = {call.lent for call in planned.problem.closed}
    kinds = ["arenas" if lent.intersection(group) else "between" for group in planned.problem.groups]
    for call in planned.problem.opened:
        posed = call.region.posed
        kinds += ["values"] * len(posed.values) + ["scratchpads"] * len(posed.scratchpads)
    return kinds
