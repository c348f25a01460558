"""``Graph``: a region program opened for rewriting.

    ask      writer, readers, views, root, producer
    change   replace, drop, insert_before, insert_after; add, alias, forget, forget_views, rename
    close    finish: the program without what nothing uses any more

A step keeps its position however many are inserted or dropped around it.  Each change costs what the step at
hand costs, however long the program is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from . import program as ir
from .dims import Dim
from .operands import operands_of, with_operands
from .renumber import select_values


class Graph:
    """Mutable view of a program.

    Attributes
    ----------
    values : by number; those that were added stand behind all others.
    steps : by position, None where one was dropped; inserted ones stand behind all others until ``finish``.
    """

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.values = list(program.values)
        self.steps: list[ir.Step | None] = []
        self._before: dict[int, list[int]] = {}
        self._after: dict[int, list[int]] = {}
        self._writer: dict[int, int] = {}
        self._reads: Counter[int] = Counter()
        self._readers: dict[int, Counter[int]] = defaultdict(Counter)
        self._views: dict[int, list[int]] = defaultdict(list)
        self._roots: dict[int, int] = {}
        for number, value in enumerate(self.values):
            if value.alias_of >= 0:
                self._views[value.alias_of].append(number)
        for step in program.steps:
            self._add_step(step)

    # --- ask --------------------------------------------------------------------------------------------

    def writer(self, value: int) -> int | None:
        """Position of the step that writes a value, of several the last one; None if none does."""
        return self._writer.get(value)

    def readers(self, value: int) -> list[int]:
        """Positions of the steps that read a value.

        What a sum adds to is no operand: a result that views it says so.
        """
        return sorted(self._readers[value]) if value in self._readers else []

    def reads(self, value: int) -> int:
        """The number of operands that are this value; one step may have several."""
        return self._reads[value]

    def is_read(self, value: int) -> bool:
        """True if a step reads a value, or sees it through views."""
        return any(map(self.reads, self.seen_as(value)))

    def views(self, value: int) -> list[int]:
        """Values that alias this one directly."""
        return list(self._views.get(value, ()))

    def seen_as(self, value: int) -> list[int]:
        """``value`` and all that views it, at any depth; what is viewed in front of its views."""
        found = [value]
        for number in found:
            found += self.views(number)
        return found

    def root(self, value: int) -> int:
        """The value that owns the bytes of ``value``."""
        passed = []
        while self.values[value].alias_of >= 0:
            passed.append(value)
            value = self._roots.get(value, self.values[value].alias_of)
        self._roots.update(dict.fromkeys(passed, value))
        return value

    def chain(self, value: int) -> list[int]:
        """``value``, what it aliases, and so on to the owner of its bytes."""
        chain = [value]
        while self.values[chain[-1]].alias_of >= 0:
            chain.append(self.values[chain[-1]].alias_of)
        return chain

    def is_private(self, value: int) -> bool:
        """True for a local that one step reads and that nothing else can see."""
        local = self.values[value].kind == "local" and self.values[value].alias_of < 0
        return local and self.reads(value) == 1 and not self._views.get(value)

    def producer(self, value: int) -> int | None:
        """Position of the step that writes a private value; None for all others."""
        return self.writer(value) if self.is_private(value) else None

    # --- change -----------------------------------------------------------------------------------------

    def replace(self, at: int, step: ir.Step) -> None:
        """Put ``step`` in the place of the one at position ``at``."""
        self._put(at, step)

    def drop(self, at: int) -> None:
        """Remove the step at position ``at``."""
        self._put(at, None)

    def insert_before(self, at: int, step: ir.Step) -> int:
        """Puts ``step`` in front of that at ``at``, behind others put there; returns its position."""
        self._before.setdefault(at, []).append(self._add_step(step))
        return len(self.steps) - 1

    def insert_after(self, at: int, step: ir.Step) -> int:
        """Puts ``step`` behind that at ``at``, and behind others put there; returns its position."""
        self._after.setdefault(at, []).append(self._add_step(step))
        return len(self.steps) - 1

    def add(self, value: ir.Value) -> int:
        """A new value; returns its number."""
        number = len(self.values)
        self.values.append(value)
        if value.alias_of >= 0:
            self._views[value.alias_of].append(number)
        return number

    def alias(self, value: int, of: int, offset: Dim = 0, layout: str = "") -> None:
        """Make ``value``, which has bytes of its own, a view of ``of``, in ``layout`` if one is given."""
        old = self.values[value]
        assert old.alias_of < 0, f"{old.name} has no bytes of its own"
        self.values[value] = replace(old, alias_of=of, alias_offset=offset, layout=layout or old.layout)
        self._views[of].append(value)

    def forget(self, since: int) -> None:
        """Take back the values from number ``since`` on, which no step touches."""
        while len(self.values) > since:
            value = self.values.pop()
            if value.alias_of >= 0:
                self._views[value.alias_of].remove(len(self.values))
        self._roots.clear()

    def forget_views(self, value: int) -> None:
        """Take the views of ``value``, which nothing reads any more, for none."""
        self._views.pop(value, None)

    def rename(self, old: int, new: int) -> None:
        """Put the value ``new`` in the place of ``old``: in steps, and below views."""
        touched = set(self.readers(old))
        if old in self._writer:
            touched.add(self._writer[old])
        for at in touched:
            step = self.steps[at]
            assert step is not None
            numbers = [new if value == old else value for _, value in operands_of(step)]
            self._put(at, with_operands(step, numbers))
        for view in self._views.pop(old, []):
            self.values[view] = replace(self.values[view], alias_of=new)
            self._views[new].append(view)
        self._roots.clear()

    def _add_step(self, step: ir.Step) -> int:
        self.steps.append(None)
        self._put(len(self.steps) - 1, step)
        return len(self.steps) - 1

    def _put(self, at: int, step: ir.Step | None) -> None:
        """Put ``step``, or nothing, at position ``at``."""
        old = self.steps[at]
        if old:
            for value in old.reads():
                self._reads[value] -= 1
                self._readers[value][at] -= 1
                if not self._readers[value][at]:
                    del self._readers[value][at]
            for value in old.results:
                if self._writer.get(value) == at:
                    del self._writer[value]
        self.steps[at] = step
        if step:
            for value in step.reads():
                self._reads[value] += 1
                self._readers[value][at] += 1
            self._writer |= dict.fromkeys(step.results, at)

    # --- close ------------------------------------------------------------------------------------------

    def used(self) -> set[int]:
        """Values that steps touch, and those that they view."""
        touched = {value for step in self.steps if step for _, value in operands_of(step)}
        return {number for value in touched for number in self.chain(value)}

    def finish(self, dropped: Collection[int] = ()) -> ir.Program:
        """The program without dropped steps and without locals that nothing uses.

        Parameters
        ----------
        dropped : inputs, outputs and constants that go too; all others stay, used or not.
        """
        used = self.used()
        kept = [
            number
            for number, value in enumerate(self.values)
            if number in used or (value.kind != "local" and number not in dropped)
        ]
        steps = tuple(step for at in range(len(self.program.steps)) for step in self._around(at))
        return select_values(replace(self.program, values=tuple(self.values), steps=steps), kept)

    def _around(self, at: int) -> Iterator[ir.Step]:
        """The step at ``at`` between those that were inserted around it."""
        for before in self._before.get(at, ()):
            yield from self._around(before)
        step = self.steps[at]
        if step:
            yield step
        for after in self._after.get(at, ()):
            yield from self._around(after)
