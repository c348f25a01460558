"""A planned program read back: its allocation problem, the plan its offsets make, and the report of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.allocation import Plan, Problem, Status, lower_bound
from ..core.allocation.token_reuse import token_reuse
from ..core.element_types import dense_bytes
from ..core.program import program as ir
from ..core.program.dims import static_shape
from ..passes.memory.liveness import ArenaProblem, arena_problem
from .memory_report import MemoryItem, MemoryReport, proof_text


@dataclass(frozen=True)
class Arena:
    """The contents of a region's arena.

    Attributes
    ----------
    kinds : ``values`` or ``scratchpads``, for each item of the problem.
    roots : for each of the first items the value that owns its bytes.
    names : for each item the names of its rectangles.
    """

    name: str
    problem: Problem
    plan: Plan
    kinds: tuple[str, ...]
    roots: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]


def planned_arena(program: ir.Program, proof: Plan | None = None) -> Arena | None:
    """The arena of a program; None if it is planned at run time.

    ``proof`` is what the solver said of it; without it no more is known than what the bound tells.
    """
    if program.arena_bytes < 0:
        return None
    posed = arena_problem(program)
    offsets = [program.values[root].offset for root in posed.values]
    offsets += [program.steps[at].scratchpad_offset for at in posed.scratchpads]
    height, bound = program.arena_bytes, lower_bound(posed.problem)
    known = (Status.LOWER_BOUND, 0) if height == bound else (Status.FEASIBLE, 0)
    status, nodes = (proof.status, proof.nodes) if proof is not None else known
    scopes = posed.problem.scopes or ("global",)
    plan = Plan(tuple(offsets), {scopes[0]: height}, {scopes[0]: bound}, status, nodes)
    kinds = ("values",) * len(posed.values) + ("scratchpads",) * len(posed.scratchpads)
    return Arena(program.name, posed.problem, plan, kinds, posed.values, _names(program, posed))


def _names(program: ir.Program, posed: ArenaProblem) -> tuple[tuple[str, ...], ...]:
    """Rectangles of a group are in the order of the values that stand for them."""
    views: dict[int, list[str]] = defaultdict(list)
    for number, value in enumerate(program.values):
        views[program.root(number)].append(value.name)
    names = []
    for at, item in enumerate(posed.problem.items):
        own = views[posed.values[at]] if at < len(posed.values) else [item.name]
        if len(own) != len(item.rectangles):  # some views are never touched
            own = [f"{item.name} (part {part + 1})" for part in range(len(item.rectangles))]
        names.append(tuple(own))
    return tuple(names)


def memory_report(program: ir.Program, proof: Plan | None = None) -> MemoryReport | None:
    """Reports the memory of a region; None if it is planned at run time."""
    arena = planned_arena(program, proof)
    if arena is None:
        return None
    items = tuple(
        MemoryItem(item.name, kind, item.extent, item.birth, item.death, offset)
        for item, kind, offset in zip(arena.problem.items, arena.kinds, arena.plan.offsets, strict=True)
    )
    total = {kind: sum(item.nbytes for item in items if item.kind == kind) for kind in set(arena.kinds)}
    values = total.get("values", 0)
    kinds = {
        "values": values,
        "scratchpads": total.get("scratchpads", 0),
        "constants": _element_bytes(program, program.of_kind("constant")),
        "inputs": _stored_bytes(program, program.of_kind("input")),
        "outputs": _stored_bytes(program, program.of_kind("output")),
        "padding": values - _element_bytes(program, arena.roots),
    }
    plan = arena.plan
    return MemoryReport(
        program.name,
        kinds,
        plan.height,
        plan.lower_bound,
        proof_text(plan),
        token_reuse(arena.problem),
        sum(item.nbytes for item in items),
        items,
        tensors=lower_bound(Problem(arena.problem.items[: len(arena.roots)])),
    )


def _element_bytes(program: ir.Program, values: Iterable[int]) -> int:
    """Bytes of the elements alone, without padding."""
    found = (program.values[number] for number in values)
    return sum(dense_bytes(static_shape(value.shape), value.dtype) for value in found)


def _stored_bytes(program: ir.Program, values: Iterable[int]) -> int:
    """Bytes as stored, where the backend said how many; else of the elements."""
    return sum(
        program.values[number].nbytes
        if program.values[number].nbytes >= 0
        else _element_bytes(program, [number])
        for number in values
    )
