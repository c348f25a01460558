"""Rewriting a region program for chosen types: casts only where types meet.

Before   v2 float32 = convolution(v0, w float32)             choice: reads bfloat16, writes bfloat16
After    v1 bfloat16 = reorder(v0);  v2 bfloat16 = convolution(v1, w bfloat16)

A value that several steps want in the other type is cast once, before the first of them; its views are made
again on what the cast wrote.  Filters become constants of the other type, rounded once from their exact
values (``balanced_rounding``); a constant that steps want in both types stands in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import reorder, rewired

from .step_types import FLOAT, StepTypes, operand_type

Constant = tuple[int, str]
"""The index of a constant of the program that was rewritten, and the type that it is wanted in."""


@dataclass(frozen=True)
class TypedProgram:
    """A program in chosen types; ``constants`` says for each of its constants what it is made of."""

    program: ir.Program
    constants: tuple[Constant, ...]
    casts: int


def apply_types(program: ir.Program, types: Sequence[StepTypes]) -> TypedProgram:
    """The program with every step's operands in the types chosen for it."""
    applier = _Applier(program, types)
    for step, chosen in zip(program.steps, types, strict=True):
        applier.step(step, chosen)
    typed = replace(program, values=tuple(applier.values), steps=tuple(applier.steps))
    return TypedProgram(typed, tuple(applier.constants), applier.casts)


class _Applier:
    def __init__(self, program: ir.Program, types: Sequence[StepTypes]) -> None:
        self.old = program
        self.values: list[ir.Value] = []
        self.steps: list[ir.Step] = []
        self.constants: list[Constant] = []
        self.casts = 0
        self.made: dict[tuple[int, str], int] = {}
        self.home = {
            program.root(result): chosen.written
            for step, chosen in zip(program.steps, types, strict=True)
            for result in step.results
        }
        for number, value in enumerate(program.values):
            if value.kind in ("input", "output"):
                self.made[number, value.dtype] = self._add(value)

    def step(self, step: ir.Step, types: StepTypes) -> None:
        self.steps.append(
            rewired(
                step,
                lambda _at, role, value: self._read(role, value, types),
                lambda _at, _role, value: self._written(value, types),
            )
        )
        for result in step.results:
            root = self.old.root(result)
            value = self.old.values[root]
            if (value.kind, value.dtype) == ("output", FLOAT) and self.home[root] != FLOAT:
                self._cast(self.made[root, self.home[root]], self.made[root, FLOAT])

    def _read(self, role: str, number: int, types: StepTypes) -> int:
        value = self.old.values[number]
        if value.dtype != FLOAT:
            return self._value(number, value.dtype)
        constant = self.old.values[self.old.root(number)].kind == "constant"
        return self._value(number, operand_type(role, constant, types))

    def _written(self, number: int, types: StepTypes) -> int:
        """The value that a step writes in place of ``number``: an owner, of which an output is a view."""
        value, root = self.old.values[number], self.old.root(number)
        dtype = types.written if value.dtype == FLOAT else value.dtype
        if (root, dtype) not in self.made:
            owner = self._add(value.inside(dtype=dtype, alias_of=-1))
            self.made[number, dtype] = owner
            if number != root:
                output = self.old.values[root].inside(dtype=dtype)
                self.made[root, dtype] = self._add(replace(output, alias_of=owner))
        return self._value(number, dtype)

    def _value(self, number: int, dtype: str) -> int:
        """The new value that holds ``number`` in a type; made on first demand."""
        way = []
        while (number, dtype) not in self.made and self.old.values[number].alias_of >= 0:
            way.append(number)
            number = self.old.values[number].alias_of
        if (number, dtype) not in self.made:
            self.made[number, dtype] = self._owner(number, dtype)
        found = self.made[number, dtype]
        for view in reversed(way):
            found = self._add(replace(self.old.values[view], alias_of=found, dtype=dtype))
            self.made[view, dtype] = found
        return found

    def _owner(self, root: int, dtype: str) -> int:
        value = self.old.values[root]
        if value.kind == "constant":
            self.constants.append((value.index, dtype))
            return self._add(replace(value, dtype=dtype, index=len(self.constants) - 1))
        source = self.made[root, self.home.get(root, value.dtype)]
        cast = self._add(ir.Value(value.name, value.shape, dtype, "local", value.layout))
        self._cast(source, cast)
        return cast

    def _cast(self, src: int, dst: int) -> None:
        self.steps.append(reorder(f"cast_{self.values[src].name}", src, dst))
        self.casts += 1

    def _add(self, value: ir.Value) -> int:
        self.values.append(value)
        return len(self.values) - 1
