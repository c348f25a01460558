"""Calls of regions opened up: their steps and values take part in the plan of the function that calls them.

    time   0        1                    2
           sin(x,a) region(a, b, arena)  cos(b, c)        closed: the arena is one block that lives
           |        |#################|  |                for the call, beside a and b

    time   0        1     2     3        4
           sin(x,a) step0 step1 step2    cos(b, c)        open: a dies behind step 0, b is born in
           |--a--------|                                  step 2, and the region's values stand
                    |--v1-----|                           wherever bytes are free
                          |--v2-----|
                                |----b-----|

A region opens where its program is planned ahead, where the call lends it an arena (``passes/region``), and
where nobody else calls it: one program has one set of offsets.  Modules are asked for their program, and for
a copy under another one, by ``byoc/region_module``, whatever their backend.

Left to others: who calls what (relax_aliases), coarse lives (relax_liveness).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import tvm
from tvm import relax

from tvm_mxplan.byoc import region_module
from tvm_mxplan.core.allocation import Item, Plan, Rectangle
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.core.program.program import Program

from ..memory.liveness import ArenaProblem, arena_problem, boundary_lives
from ..memory.plan_memory import with_offsets

_MODULES = "external_mods"
Interval = tuple[int, int]


@dataclass(frozen=True)
class Region:
    """The properties of one region that the planner of a function needs.

    Attributes
    ----------
    program : as it was planned alone.
    posed : its allocation problem.
    touched : for each input, then each output, the steps that touch it.
    calls : how many calls there are; with one, the region can be opened.
    """

    program: Program
    posed: ArenaProblem
    touched: tuple[Interval, ...]
    calls: int

    @classmethod
    def of(cls, program: Program, calls: int) -> Region:
        touched = (*boundary_lives(program, "input"), *boundary_lives(program, "output"))
        return cls(program, arena_problem(program), touched, calls)

    @property
    def steps(self) -> int:
        return len(self.program.steps)

    def items(self, start: int, scope: str) -> list[Item]:
        """Its values and scratchpads if its first step is at ``start``."""
        return [
            replace(
                item,
                name=f"{self.program.name}.{item.name}",
                rectangles=tuple(_moved(rectangle, start) for rectangle in item.rectangles),
                scope=scope,
            )
            for item in self.posed.problem.items
        ]

    def planned(self, offsets: Sequence[int], height: int) -> Program:
        """Its program with its items at ``offsets`` of an arena of ``height`` bytes."""
        return with_offsets(self.program, self.posed, Plan(tuple(offsets), {"global": height}))


class Timeline:
    """Times at which calls take several steps, and lives that end or begin inside of them.

    ``opened`` has the region and the allocations in its arguments by the coarse time of the call.
    """

    def __init__(self, calls: int, opened: Mapping[int, tuple[Region, Sequence[frozenset[int]]]]) -> None:
        widths = [opened[time][0].steps if time in opened else 1 for time in range(calls)]
        self.starts = list(accumulate(widths, initial=0))
        self._touched: dict[tuple[int, int], Interval] = {}
        for time, (region, arguments) in opened.items():
            for (first, end), tensors in zip(region.touched, arguments, strict=True):
                for tensor in tensors:
                    known = self._touched.get((time, tensor), (first, end))
                    self._touched[time, tensor] = (min(known[0], first), max(known[1], end))

    def fine(self, tensor: int, interval: Interval, *, born: bool) -> Interval:
        """The steps of a life that is given in calls.

        Only what is ``born`` in it may begin with the step that writes it: in a later part, behind a branch
        that did not need the bytes, they hold something from the start.
        """
        birth, last = interval[0], interval[1] - 1
        first = self._touched.get((birth, tensor), (0, 0))[0] if born else 0
        whole = (0, self.starts[last + 1] - self.starts[last])
        end = self._touched.get((last, tensor), whole)[1]
        return self.starts[birth] + first, self.starts[last] + end


def regions_of(mod: tvm.IRModule) -> dict[str, Region]:
    """The regions of a module that are planned ahead, by the name they are called by."""
    calls: Counter[str] = Counter()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, relax.ExternFunc):
            calls[str(expr.op.global_symbol)] += 1

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    programs = {symbol: _program(module) for symbol, module in _modules(mod).items() if calls[symbol]}
    return {
        symbol: Region.of(program, calls[symbol])
        for symbol, program in programs.items()
        if program is not None and program.arena_bytes > 0
    }


def with_programs(mod: tvm.IRModule, programs: Mapping[str, Program]) -> tvm.IRModule:
    """The module with other programs in the runtime modules of some regions."""
    if not programs:
        return mod
    modules = [
        region_module.with_program(module, programs[symbol]) if symbol in programs else module
        for symbol, module in _modules(mod).items()
    ]
    return mod.with_attr(_MODULES, modules)


def lends_arena(region: Region, arguments: Sequence[Any]) -> bool:
    """True if the last argument of a call is an arena."""
    return len(arguments) == len(region.touched) + 1


def _modules(mod: tvm.IRModule) -> dict[str, Any]:
    """The external modules by the name of what they hold; others than regions by their place."""
    modules = list(mod.attrs[_MODULES]) if _MODULES in mod.attrs else []
    return {
        region_module.symbol_of(module) if region_module.carries_program(module) else f"#{at}": module
        for at, module in enumerate(modules)
    }


def _program(module: Any) -> Program | None:
    """The program of a region that is planned ahead."""
    if not region_module.takes_program(module):
        return None
    program = region_module.program_of(module)
    return program if all(is_static(value.shape) for value in program.values) else None


def _moved(rectangle: Rectangle, steps: int) -> Rectangle:
    return replace(rectangle, birth=rectangle.birth + steps, death=rectangle.death + steps)
