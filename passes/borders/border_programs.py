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
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.operands import reorder
from tvm_mxplan.core.program.renumber import sort_values

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
        self.graph = Graph(program)
        self.inside: dict[int, set[int]] = {}

    def writer_of(self, output: int) -> int | None:
        """Position of the one step that writes ``output``, or the one view of it.

        None where there are more, or where a step reads what it wrote.
        """
        graph = self.graph
        views = [value for value in graph.views(output) if self._is_used(value)]
        written = views[0] if len(views) == 1 and graph.writer(output) is None else output
        alone = not views if written == output else not graph.views(written)
        read = graph.reads(output) or graph.reads(written)
        return None if read or not alone else graph.writer(written)

    def source_of(self, output: int) -> int | None:
        """The local value whose reorder is all that ``output`` is; None where there is none."""
        at = self.writer_of(output)
        steps = self.program.steps
        if at is None or not isinstance(steps[at].attrs, ir.Reorder):
            return None
        source = steps[at].operand("src")
        first = next(reader for reader in self.graph.readers(source) if self._shows(steps[reader]))
        same = self.program.values[source].shape == self.program.values[output].shape
        if not same or first != at or not self._is_free(source):
            return None
        writer = self.graph.writer(source)
        return None if writer is None or isinstance(steps[writer].attrs, ir.Reorder) else source

    def _shows(self, step: ir.Step) -> bool:
        """True if a step writes an output of the region."""
        return any(self.program.values[self.program.root(value)].kind == "output" for value in step.results)

    def _is_used(self, value: int) -> bool:
        written = self.graph.writer(value) is not None
        return written or bool(self.graph.reads(value)) or bool(self.graph.views(value))

    def _readers(self, value: int) -> list[ir.Step]:
        return [self.program.steps[at] for at in self.graph.readers(value)]

    def layouts_of(self, value: int) -> tuple[str, ...]:
        """Layouts in which an input is read."""
        plain = self.program.values[value].layout
        found = {plain} if self.graph.views(value) else set()
        for step in self._readers(value):
            copied = self._copied(step, self.program.values[value])
            found.add(plain if copied is None else self.program.values[copied].layout)
        return tuple(sorted(found)) or (plain,)

    def _copied(self, step: ir.Step, value: ir.Value) -> int | None:
        """The free value that a step makes of ``value`` in another layout; None if it does anything else."""
        if not isinstance(step.attrs, ir.Reorder):
            return None
        same = self.program.values[step.dst].shape == value.shape
        return step.dst if same and self._is_free(step.dst) else None

    def _is_free(self, value: int) -> bool:
        """True for a local with bytes of its own, also after concats have taken their pieces."""
        what = self.program.values[value]
        written = self.graph.writer(value) is not None
        return what.kind == "local" and what.alias_of < 0 and written and not self._is_piece(value)

    def _is_piece(self, value: int) -> bool:
        return any(
            self._stands_inside(step.attrs, step, value)
            for step in self._readers(value)
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
        self.graph = Graph(program)
        self.dropped: set[int] = set()
        self.own = {"input": program.of_kind("input"), "output": program.of_kind("output")}
        self.ports = {kind: list(values) for kind, values in self.own.items()}

    def take(self, number: int, layouts: Sequence[str]) -> None:
        ports = self._ports("input", number, layouts)
        value = self.own["input"][number]
        for at in self.uses.graph.readers(value):
            step = self.program.steps[at]
            if isinstance(step.attrs, ir.Reorder):
                layout = self.program.values[step.dst].layout
                if layout in ports and layout != self.program.values[value].layout:
                    self.graph.drop(at)
                    self.graph.rename(step.dst, ports[layout])

    def give(self, number: int, layouts: Sequence[str]) -> None:
        output = self.own["output"][number]
        if list(layouts) == [self.program.values[output].layout]:
            return
        source = self.uses.source_of(output)
        ports = self._ports("output", number, layouts)
        if source is None:
            home = ports.pop(self.program.values[output].layout)
            at = len(self.program.steps) - 1
        else:
            native = self.program.values[source].layout
            home = ports.pop(native, source)
            writer = self.uses.writer_of(output)
            assert writer is not None
            at = writer
            self.graph.drop(at)
            if home != source:
                self.graph.rename(source, home)
        for layout, port in ports.items():
            name = f"reorder_{self.program.values[output].name}_{layout}"
            self.graph.insert_after(at, reorder(name, home, port))

    def _ports(self, kind: ir.ValueKind, number: int, layouts: Sequence[str]) -> dict[str, int]:
        """A value for each layout: the old one where it is wanted plain, new ones for the others."""
        old, values = self.own[kind][number], self.graph.values
        if values[old].layout not in layouts:
            self.dropped.add(old)
        ports: dict[str, int] = {}
        for layout in layouts:
            index = len(self.ports[kind]) if ports else number
            if layout == values[old].layout:
                ports[layout] = old
                values[old] = replace(values[old], index=index)
            else:
                port = replace(values[old], layout=layout, index=index, nbytes=-1, state=-1)
                ports[layout] = self.graph.add(port)
            if index == number:
                self.ports[kind][number] = ports[layout]
            else:
                self.ports[kind].append(ports[layout])
        return ports

    def finish(self) -> ir.Program:
        return sort_values(self.graph.finish(self.dropped))
