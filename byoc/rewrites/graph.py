"""A region program with its constants, opened for rewriting by fusion; see ``core.program.graph``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.program import graph
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape, is_static, static_shape
from tvm_mxplan.core.program.operands import renumbered
from tvm_mxplan.core.program.renumber import sort_values


class Graph(graph.Graph):
    """A program, the numbers of its constants, and a note of who took in whose work."""

    def __init__(self, program: ir.Program, constants: list[np.ndarray]) -> None:
        super().__init__(program)
        self.constants = list(constants)
        self._taken_in: dict[str, str] = {}

    def is_unread(self, value: int) -> bool:
        """True for a local that no step reads, nor any view of it."""
        local = self.values[value].kind == "local" and self.values[value].alias_of < 0
        return local and not self.reads(value) and not self.views(value)

    def merge(self, producer: int, consumer: int, merged: ir.Step) -> None:
        """Put ``merged``, which writes what ``consumer`` wrote, in the place of both steps."""
        for position in (producer, consumer):
            self._note(position, merged.name)
        self.drop(producer)
        self.replace(consumer, merged)

    def drop_into(self, at: int, into: str) -> None:
        """Remove a step whose work the one named ``into`` does from now on."""
        self._note(at, into)
        self.drop(at)

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

    def constant(self, value: int) -> np.ndarray | None:
        """Numbers of a constant, or of one seen in another shape or with its axes permuted."""
        chain = self.chain(value)
        root, seen = self.values[chain[-1]], self.values[value]
        layout = parse_layout(seen.layout)
        if root.kind != "constant" or layout.blocks or root.layout != plain_layout(len(root.shape)):
            return None
        if any(self.values[v].alias_offset != 0 for v in chain) or not is_static(seen.shape):
            return None
        shape = static_shape(seen.shape)
        stored = self.constants[root.index].reshape([shape[axis] for axis in layout.order])
        return stored.transpose(np.argsort(layout.order))

    def become_constant(self, value: int, array: np.ndarray) -> None:
        """Make a constant of a local that no step writes any more."""
        self.constants.append(np.ascontiguousarray(array, dtype=self.values[value].dtype))
        index = len(self.constants) - 1
        self.values[value] = replace(self.values[value], kind="constant", index=index)

    def rebuild(self, steps: list[ir.Step], same: dict[int, int]) -> None:
        """Put ``steps`` in the place of all, and others in the place of the values that ``same`` names.

        Numbers of values change.
        """

        def found(value: int) -> int:
            while value in same:
                value = same[value]
            return value

        number = {value: found(value) for value in range(len(self.values))}
        values = tuple(
            replace(value, alias_of=number[value.alias_of]) if value.alias_of >= 0 else value
            for value in self.values
        )
        written = tuple(renumbered(step, number) for step in steps)
        program = replace(self.program, values=values, steps=written)
        super().__init__(sort_values(graph.Graph(program).finish()))

    def add_constant(self, array: np.ndarray, name: str, dtype: str = "float32") -> int:
        array = np.ascontiguousarray(array, dtype=dtype)
        self.constants.append(array)
        index = len(self.constants) - 1
        return self.add(ir.Value(name, array.shape, dtype, "constant", plain_layout(array.ndim), index))

    def add_local(self, name: str, shape: Shape, dtype: str = "float32") -> int:
        return self.add(ir.Value(name, shape, dtype, "local", plain_layout(len(shape))))

    def close(self) -> tuple[ir.Program, list[np.ndarray]]:
        """The program and its constants, without what nothing uses."""
        used = self.used()
        unused = [n for n, value in enumerate(self.values) if value.kind == "constant" and n not in used]
        program = self.finish(dropped=unused)
        if any(value.alias_of >= number for number, value in enumerate(program.values)):
            program = sort_values(program)
        constants: list[np.ndarray] = []
        values = []
        for value in program.values:
            if value.kind == "constant":
                constants.append(self.constants[value.index])
                value = replace(value, index=len(constants) - 1)
            values.append(value)
        return replace(program, values=tuple(values)), constants
