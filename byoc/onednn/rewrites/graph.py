"""A region program opened for rewriting: who writes a value, who reads it, and putting it back together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.core.program.renumber import renumber_step


class Graph:
    """Mutable view of a program; positions of removed steps hold None until ``finish``.

    Each change costs what the step at hand costs, however long the program is.
    """

    def __init__(self, program: ir.Program, constants: list[np.ndarray]) -> None:
        self.program = program
        self.values = list(program.values)
        self.constants = list(constants)
        self._taken_in: dict[str, str] = {}
        self._views = {value.alias_of for value in self.values if value.alias_of >= 0}
        self.set_steps(list(program.steps))

    def set_steps(self, steps: list[ir.Step | None]) -> None:
        self.steps = steps
        self._reads = Counter(value for step in steps if step for value in step.reads())
        self._writer = {value: at for at, step in enumerate(steps) if step for value in step.results}

    def _put(self, at: int, step: ir.Step | None) -> None:
        """Put ``step``, or nothing, at position ``at``."""
        old = self.steps[at]
        if old:
            self._reads.subtract(old.reads())
            for value in old.results:
                if self._writer.get(value) == at:
                    del self._writer[value]
        self.steps[at] = step
        if step:
            self._reads.update(step.reads())
            self._writer |= dict.fromkeys(step.results, at)

    def is_private(self, value: int) -> bool:
        """True for a local that one step reads and that nothing else can see."""
        local = self.values[value].kind == "local" and self.values[value].alias_of < 0
        return local and self._reads[value] == 1 and value not in self._views

    def producer(self, value: int) -> int | None:
        """Position of the step that writes a private value; None for all others."""
        return self._writer.get(value) if self.is_private(value) else None

    def writer(self, value: int) -> int | None:
        """Position of the step that writes a value, None where none does."""
        return self._writer.get(value)

    def reads_of(self, value: int) -> int:
        """Number of times that steps read a value, not through views."""
        return self._reads[value]

    def unview(self, value: int) -> None:
        """Forget the views of a value, which nothing reads any longer."""
        self._views.discard(value)

    def show(self, number: int, value: ir.Value) -> None:
        """Put a view in the place of the value ``number``."""
        self.values[number] = value
        self._views.add(value.alias_of)

    def merge(self, producer: int, consumer: int, merged: ir.Step) -> None:
        """Put ``merged``, which writes what ``consumer`` wrote, in the place of both steps."""
        for position in (producer, consumer):
            self._note(position, merged.name)
        self._put(producer, None)
        self._put(consumer, merged)

    def drop(self, at: int, into: str) -> None:
        """Remove a step whose work the one named ``into`` does from now on."""
        self._note(at, into)
        self._put(at, None)

    def _note(self, at: int, into: str) -> None:
        step = self.steps[at]
        if step and step.name != into:
            self._taken_in[step.name] = into

    def fused(self) -> dict[str, str]:
        """For each step that others took in, the one that is left in the end."""
        found = {}
        for name, into in self._taken_in.items():
            while into in self._taken_in:
                into = self._taken_in[into]
            found[name] = into
        return found

    def replace(self, at: int, step: ir.Step) -> None:
        """Put ``step`` in the place of the one at position ``at``."""
        self._put(at, step)

    def constant(self, value: int) -> np.ndarray | None:
        """Numbers of a constant, or of one seen in another shape or with its axes permuted."""
        chain = self._chain(value)
        root, seen = self.values[chain[-1]], self.values[value]
        layout = parse_layout(seen.layout)
        if root.kind != "constant" or layout.blocks or root.layout != plain_layout(len(root.shape)):
            return None
        if any(self.values[v].alias_offset != 0 for v in chain):
            return None
        stored = self.constants[root.index].reshape([seen.shape[axis] for axis in layout.order])  # type: ignore[arg-type]
        return stored.transpose(np.argsort(layout.order))

    def _chain(self, value: int) -> list[int]:
        chain = [value]
        while self.values[chain[-1]].alias_of >= 0:
            chain.append(self.values[chain[-1]].alias_of)
        return chain

    def add_constant(self, array: np.ndarray, name: str) -> int:
        array = np.ascontiguousarray(array, dtype="float32")
        self.constants.append(array)
        index = len(self.constants) - 1
        layout = plain_layout(array.ndim)
        self.values.append(ir.Value(name, array.shape, "float32", "constant", layout, index))
        return len(self.values) - 1

    def add_local(self, name: str, shape: Shape) -> int:
        self.values.append(ir.Value(name, shape, "float32", "local", plain_layout(len(shape))))
        return len(self.values) - 1

    def add_view(self, value: ir.Value) -> int:
        """A value that aliases another one."""
        self.values.append(value)
        self._views.add(value.alias_of)
        return len(self.values) - 1

    def finish(self) -> tuple[ir.Program, list[np.ndarray]]:
        """The program without removed steps and without values and constants that nothing uses."""
        steps = [step for step in self.steps if step]
        used = {value for step in steps for value in (*step.reads(), *step.results)}
        for value in sorted(used, reverse=True):
            used.update(self._chain(value))
        wanted = [i for i, value in enumerate(self.values) if i in used or value.kind in ("input", "output")]
        # A view may have been put in the place of an older value than what it views.
        keep = list(dict.fromkeys(one for i in wanted for one in reversed(self._chain(i))))
        number = {old: new for new, old in enumerate(keep)}
        constants: list[np.ndarray] = []
        values = []
        for old in keep:
            value = self.values[old]
            if value.kind == "constant":
                constants.append(self.constants[value.index])
                value = replace(value, index=len(constants) - 1)
            if value.alias_of >= 0:
                value = replace(value, alias_of=number[value.alias_of])
            values.append(value)
        renumbered = tuple(renumber_step(step, number) for step in steps)
        return replace(self.program, values=tuple(values), steps=renumbered), constants
