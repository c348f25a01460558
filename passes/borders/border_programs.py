"""The borders of a region program: the layouts in which its inputs and outputs could cross, and letting them.

Before   v0 input x abcd;  v1 = reorder(v0) acdb;  ...  v9 acdb;  v10 output y abcd = reorder(v9)
After    v0 input x acdb;  ...  v9 output y acdb

An input or output that is wanted in several layouts becomes several: the first keeps its number, the others
stand behind all that there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.renumber import renumber_step, select_values, sort_values

from ..memory.boxes import piece_offsets

Forms = Sequence[Sequence[str]]
"""The layouts of every input, or of every output, by its number."""


@dataclass(frozen=True)
class Borders:
    """The layouts that a program's inputs and outputs allow, by their number.

    Attributes
    ----------
    takes : every layout in which an input is read; the plain one only where some step reads it so.
    gives : the layout in which a result is there before any reorder.
    """

    takes: tuple[tuple[str, ...], ...]
    gives: tuple[str, ...]


def borders_of(program: ir.Program) -> Borders:
    """The borders of a program with plain inputs and outputs, in which no memory is shared yet."""
    uses = _Uses(program)
    sources = [(uses.source_of(output), output) for output in program.of_kind("output")]
    return Borders(
        tuple(uses.layouts_of(value) for value in program.of_kind("input")),
        tuple(program.values[output if source is None else source].layout for source, output in sources),
    )


def cross_borders(program: ir.Program, takes: Forms, gives: Forms) -> ir.Program:
    """The program with some inputs and outputs in the layouts given for them.

    An output that is made plain, without a reorder, must be wanted plain too.
    """
    crossing = _Crossing(program)
    for number, layouts in enumerate(takes):
        crossing.take(number, layouts)
    for number, layouts in enumerate(gives):
        crossing.give(number, layouts)
    return crossing.finish()


def ports_of(forms: Forms) -> list[tuple[int, str]]:
    """The inputs or outputs that ``forms`` make, in their order: old number and layout."""
    first = [(number, layouts[0]) for number, layouts in enumerate(forms)]
    return first + [(number, layout) for number, layouts in enumerate(forms) for layout in layouts[1:]]


class _Uses:
    """The writers and the readers of the values of a program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.writers = {value: step for step in program.steps for value in step.results}
        self.readers: dict[int, list[ir.Step]] = {}
        for step in program.steps:
            for value in dict.fromkeys(step.reads()):
                self.readers.setdefault(value, []).append(step)
        self.inside: dict[int, set[int]] = {}
        self.views: dict[int, list[int]] = {}
        for number, value in enumerate(program.values):
            self.views.setdefault(value.alias_of, []).append(number)

    def writer_of(self, output: int) -> ir.Step | None:
        """The one step that writes ``output``, itself or as a view; None if more is made of its bytes."""
        views = [value for value in self.views.get(output, ()) if self._is_used(value)]
        written = views[0] if len(views) == 1 and output not in self.writers else output
        alone = not views if written == output else not self.views.get(written)
        return None if self.readers.get(written) or not alone else self.writers.get(written)

    def source_of(self, output: int) -> int | None:
        """The local value whose reorder is all that ``output`` is; None where there is none."""
        writer = self.writer_of(output)
        if writer is None or not isinstance(writer.attrs, ir.Reorder):
            return None
        source = writer.operand("src")
        first = next(step for step in self.readers[source] if self._shows(step))
        same = self.program.values[source].shape == self.program.values[output].shape
        if not same or first is not writer or not self._is_free(source):
            return None
        return None if isinstance(self.writers[source].attrs, ir.Reorder) else source

    def _shows(self, step: ir.Step) -> bool:
        """True if a step writes an output of the region."""
        return any(self.program.values[self.program.root(value)].kind == "output" for value in step.results)

    def _is_used(self, value: int) -> bool:
        return value in self.writers or bool(self.readers.get(value)) or bool(self.views.get(value))

    def layouts_of(self, value: int) -> tuple[str, ...]:
        """Layouts in which an input is read."""
        plain = self.program.values[value].layout
        found = {plain} if self.views.get(value) else set()
        for step in self.readers.get(value, ()):
            copy = self.program.values[step.dst]
            alike = isinstance(step.attrs, ir.Reorder) and copy.shape == self.program.values[value].shape
            found.add(copy.layout if alike and self._is_free(step.dst) else plain)
        return tuple(sorted(found)) or (plain,)

    def _is_free(self, value: int) -> bool:
        """True for a local with bytes of its own, also after concats have taken their pieces."""
        what = self.program.values[value]
        return (
            what.kind == "local" and what.alias_of < 0 and value in self.writers and not self._is_piece(value)
        )

    def _is_piece(self, value: int) -> bool:
        return any(
            self._stands_inside(step.attrs, step, value)
            for step in self.readers.get(value, ())
            if isinstance(step.attrs, ir.Concat)
        )

    def _stands_inside(self, concat: ir.Concat, step: ir.Step, value: int) -> bool:
        """True if ``value`` could be made where the result of the concatenation stands."""
        if step.dst not in self.inside:
            values = self.program.values
            pieces = [operand.value for operand in step.operands if operand.role == "src"]
            offsets = piece_offsets(values[step.dst], concat.axis, [values[piece] for piece in pieces])
            placed = zip(pieces, offsets, strict=True)
            self.inside[step.dst] = {piece for piece, offset in placed if offset is not None}
        return value in self.inside[step.dst]


class _Crossing:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.uses = _Uses(program)
        self.values = list(program.values)
        self.steps: list[list[ir.Step]] = [[step] for step in program.steps]
        self.renamed: dict[int, int] = {}
        self.dropped: set[int] = set()
        self.own = {"input": program.of_kind("input"), "output": program.of_kind("output")}
        self.ports = {kind: list(values) for kind, values in self.own.items()}
        self.writers = {value: at for at, step in enumerate(program.steps) for value in step.results}
        self.reorders: dict[int, list[int]] = {}
        for at, step in enumerate(program.steps):
            if isinstance(step.attrs, ir.Reorder):
                self.reorders.setdefault(step.operand("src"), []).append(at)

    def take(self, number: int, layouts: Sequence[str]) -> None:
        ports = self._ports("input", number, layouts)
        value = self.own["input"][number]
        for at in self.reorders.get(value, ()):
            dst = self.program.steps[at].dst
            layout = self.program.values[dst].layout
            if layout in ports and layout != self.program.values[value].layout:
                self.renamed[dst] = ports[layout]
                self.steps[at] = []

    def give(self, number: int, layouts: Sequence[str]) -> None:
        output = self.own["output"][number]
        if list(layouts) == [self.program.values[output].layout]:
            return
        source = self.uses.source_of(output)
        ports = self._ports("output", number, layouts)
        if source is None:
            home = ports.pop(self.program.values[output].layout)
            at = len(self.steps) - 1
        else:
            native = self.program.values[source].layout
            home = ports.pop(native, source)
            if home != source:
                self.renamed[source] = home
            writer = self.uses.writer_of(output)
            assert writer is not None
            at = self.writers[writer.dst]
            self.steps[at] = []
        for layout, port in ports.items():
            name = f"reorder_{self.program.values[output].name}_{layout}"
            operands = (ir.Operand("src", home), ir.Operand("dst", port))
            self.steps[at].append(ir.Step(name, ir.Reorder(), operands))

    def _ports(self, kind: ir.ValueKind, number: int, layouts: Sequence[str]) -> dict[str, int]:
        """A value for each layout: the old one where it is wanted plain, new ones for the others."""
        old = self.own[kind][number]
        if self.values[old].layout not in layouts:
            self.dropped.add(old)
        ports: dict[str, int] = {}
        for layout in layouts:
            index = len(self.ports[kind]) if ports else number
            if layout == self.values[old].layout:
                ports[layout] = old
                self.values[old] = replace(self.values[old], index=index)
            else:
                ports[layout] = len(self.values)
                self.values.append(replace(self.values[old], layout=layout, index=index, nbytes=-1))
            if index == number:
                self.ports[kind][number] = ports[layout]
            else:
                self.ports[kind].append(ports[layout])
        return ports

    def finish(self) -> ir.Program:
        number = {value: self.renamed.get(value, value) for value in range(len(self.values))}
        values = tuple(
            replace(value, alias_of=number[value.alias_of]) if value.alias_of >= 0 else value
            for value in self.values
        )
        steps = tuple(renumber_step(step, number) for steps in self.steps for step in steps)
        used = {value for step in steps for value in (*step.reads(), *step.results)}
        for value in sorted(used):
            while values[value].alias_of >= 0:
                value = values[value].alias_of
                used.add(value)
        keep = [
            number
            for number, value in enumerate(values)
            if number in used or (value.kind != "local" and number not in self.dropped)
        ]
        return sort_values(select_values(replace(self.program, values=values, steps=steps), keep))
