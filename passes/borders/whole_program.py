"""Derives one program of several regions of a function, for a choice of layouts over all of them at once.

region A  x, w -> v         v0 input x, v1 input w, v2 v, v3 ...
region B  v, w -> g         reads v2 and v1, and so on

What forward leaves for backward is read there in the layout in which forward has it: a region alone does not
know what its own choice makes the next one pay.  Such a program is for choosing only; it is never run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import renumbered


@dataclass(frozen=True)
class RegionUse:
    """A region's program in the one call of it.

    Attributes
    ----------
    takes, gives : the function's tensors by number, for each input and each output.
    free : of these, those that nothing but regions reads.
    """

    program: ir.Program
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    free: Collection[int]


@dataclass(frozen=True)
class Part:
    """A region's share of a whole program.

    Attributes
    ----------
    steps : the positions of its steps.
    values : for each of its values the number of the one in the whole program.
    """

    steps: slice
    values: tuple[int, ...]


def joined(uses: Sequence[RegionUse]) -> tuple[ir.Program, tuple[Part, ...]]:
    """The program of all regions, in the order of their calls, and the part of each."""
    values: list[ir.Value] = []
    steps: list[ir.Step] = []
    parts: list[Part] = []
    known: dict[int, int] = {}
    for use in uses:
        numbers = _numbers(use, known, values)
        fresh = [number for number, at in enumerate(numbers) if at >= len(values)]
        for number in fresh:
            value = use.program.values[number]
            base = numbers[value.alias_of] if value.alias_of >= 0 else -1
            values.append(replace(value, state=-1, alias_of=base))  # states are numbered in each region alone
        for number, tensor in zip(use.program.of_kind("output"), use.gives, strict=True):
            if tensor in use.free:
                values[numbers[number]] = values[numbers[number]].inside()
            written = _written(use.program, number)
            if written is not None:
                known[tensor] = numbers[written]
        for number, tensor in zip(use.program.of_kind("input"), use.takes, strict=True):
            known.setdefault(tensor, numbers[number])
        parts.append(Part(slice(len(steps), len(steps) + len(use.program.steps)), tuple(numbers)))
        steps += [renumbered(step, dict(enumerate(numbers))) for step in use.program.steps]
    return ir.Program("", tuple(values), tuple(steps)), tuple(parts)


def _numbers(use: RegionUse, known: dict[int, int], values: Sequence[ir.Value]) -> list[int]:
    """The number of each value of a region: that of a tensor that is there already, or the next one."""
    there: dict[int, int] = {}
    for number, tensor in zip(use.program.of_kind("input"), use.takes, strict=True):
        at = known.get(tensor, -1)
        if at >= 0 and values[at].shape == use.program.values[number].shape:
            there[number] = at
    found, following = [], len(values)
    for number in range(len(use.program.values)):
        if number in there:
            found.append(there[number])
        else:
            found.append(following)
            following += 1
    return found


def _written(program: ir.Program, output: int) -> int | None:
    """The value by which a step writes an output, that or a view of all of it; None where several do."""
    whole = program.values[output]
    found = [
        value
        for step in program.steps
        for value in step.results
        if program.root(value) == output and program.values[value].kind != "constant"
    ]
    if len(found) != 1:
        return None
    value = program.values[found[0]]
    same = value.shape == whole.shape and value.layout == whole.layout and value.alias_offset == 0
    return found[0] if same else None
