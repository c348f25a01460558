"""The report of a function's arena: what its kernels hand on, and what its regions keep in it."""

from __future__ import annotations

from .core.allocation.token_reuse import token_reuse
from .memory_report import MemoryItem, MemoryReport, proof_text
from .passes.memory.storage_plan import StoragePlan


def function_report(name: str, planned: StoragePlan) -> MemoryReport | None:
    """What the report says of the memory of a lowered function; None if it needs no arena of fixed size."""
    items = tuple(
        MemoryItem(item.name, kind, item.extent, item.birth, item.death, offset)
        for item, kind, offset in zip(
            planned.problem.problem.items, _kinds(planned), planned.plan.offsets, strict=True
        )
        if planned.arenas[item.scope].unit is None
    )
    if not items:
        return None
    kinds = {kind: sum(item.nbytes for item in items if item.kind == kind) for kind in _KINDS}
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
    )


_KINDS = ("between", "values", "scratchpads")


def _kinds(planned: StoragePlan) -> list[str]:
    kinds = ["between"] * len(planned.problem.groups)
    for call in planned.problem.opened:
        posed = call.region.posed
        kinds += ["values"] * len(posed.values) + ["scratchpads"] * len(posed.scratchpads)
    return kinds
