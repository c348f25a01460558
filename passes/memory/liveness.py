"""From a region program to an allocation problem: what lives when, and how many bytes it takes.

Time is counted in steps; a value born at step i that is last read at step j lives [i, j + 1).  A value and
all its aliases are one item: they stand at fixed distances from one another.  A view keeps what it views
alive; a value that is written itself (a piece of a concatenation, a result in place) stands for its own
bytes alone; reading a whole that no step writes itself is reading all pieces of it that are written.  Inputs,
outputs, constants and their views take no bytes of the arena.  The scratchpad of step i lives [i, i + 1).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tvm_mxplan.core.allocation import Item, Problem, Rectangle
from tvm_mxplan.core.allocation.alignment import ALIGNMENT
from tvm_mxplan.core.program import program as ir


@dataclass(frozen=True)
class ArenaProblem:
    """An allocation problem and what its items stand for.

    Attributes
    ----------
    values : for each of the first items the value that owns its bytes.
    scratchpads : for each of the remaining items the step it belongs to.
    """

    problem: Problem
    values: tuple[int, ...]
    scratchpads: tuple[int, ...]


def arena_problem(program: ir.Program) -> ArenaProblem:
    """The problem of a program whose values know their bytes; sizes are rounded up to the alignment."""
    births, deaths = _lives(program)
    groups: dict[int, list[Rectangle]] = defaultdict(list)
    for number, value in enumerate(program.values):
        root = program.root(number)
        if program.values[root].kind != "local" or number not in births:
            continue
        offset = offset_in_root(program, number)
        # A piece of a whole ends where the next begins; only what owns the bytes is rounded up.
        nbytes = _rounded(value.nbytes) if number == root else value.nbytes
        rectangle = Rectangle(births[number], deaths[number], offset, nbytes)
        groups[root].append(rectangle)
    owners = sorted(groups)
    items = [Item(program.values[root].name, tuple(groups[root]), ALIGNMENT) for root in owners]
    scratchpads = [at for at, step in enumerate(program.steps) if step.scratchpad_bytes > 0]
    for at in scratchpads:
        step = program.steps[at]
        whole = Rectangle(at, at + 1, 0, _rounded(step.scratchpad_bytes))
        items.append(Item(f"{step.name}.scratchpad", (whole,), ALIGNMENT))
    return ArenaProblem(Problem(tuple(items)), tuple(owners), tuple(scratchpads))


def boundary_lives(program: ir.Program, kind: ir.ValueKind) -> list[tuple[int, int]]:
    """For each input, or output, the steps ``[first, last + 1)`` that touch its bytes; all if none does."""
    births, deaths = _lives(program)
    lives = []
    families: dict[int, list[int]] = defaultdict(list)
    for value in births:
        families[program.root(value)].append(value)
    for owner in program.of_kind(kind):
        family = families[owner]
        first = min((births[value] for value in family), default=0)
        lives.append((first, max((deaths[value] for value in family), default=len(program.steps))))
    return lives


def _lives(program: ir.Program) -> tuple[dict[int, int], dict[int, int]]:
    """First and one past the last step at which each value's bytes matter."""
    births: dict[int, int] = {}
    deaths: dict[int, int] = {}
    written = {value for step in program.steps for value in step.results}
    pieces: dict[int, list[int]] = defaultdict(list)
    for value in written:
        pieces[program.root(value)].append(value)
    for at, step in enumerate(program.steps):
        for touched in (*step.results, *program.reads(step)):
            views = _views(program, written, touched)
            for value in views:
                births.setdefault(value, at)
                deaths[value] = at + 1
            if views[-1] not in written:
                deaths.update((piece, at + 1) for piece in pieces[views[-1]] if piece in births)
    return births, deaths


def _views(program: ir.Program, written: set[int], value: int) -> list[int]:
    """``value`` and what it views, up to the nearest one that a step writes or that owns the bytes."""
    views = [value]
    while views[-1] not in written and program.values[views[-1]].alias_of >= 0:
        views.append(program.values[views[-1]].alias_of)
    return views


def offset_in_root(program: ir.Program, value: int) -> int:
    """Byte at which ``value`` begins in the value that owns its bytes."""
    offset = 0
    while program.values[value].alias_of >= 0:
        step = program.values[value].alias_offset
        assert isinstance(step, int), "a program with symbolic offsets is planned at run time"
        offset += step
        value = program.values[value].alias_of
    return offset


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
