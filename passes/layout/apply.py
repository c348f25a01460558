"""Rewriting a region program for chosen layouts: reorders only where layouts meet.

Before   v2 abcd = convolution(v0 abcd, ...)         choice: (acdb, ..., acdb)
After    v1 acdb = reorder(v0);  v2 acdb = convolution(v1 acdb, ...)

A value that several steps want in the same other layout is reordered once.  Two layouts that store a shape
in the same order (channels last of one pixel, say) are the same bytes and cost nothing.  A view shows what it
views in the layout chosen for that, and a copy whose result is stored as its source is none.

Before   v1 abcd = convolution(...);  v2 = v1 seen as adbc;  v3 abcd = reorder(v2);  layer_normalization(v3)
After    v1 acdb = convolution(...);  v2 = v1 seen as abcd;  layer_normalization(v2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tvm_mxplan.byoc.backend import Hop, directly
from tvm_mxplan.core.layout.layout import same_bytes
from tvm_mxplan.core.layout.views import Seen, layout_through
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import reorder, rewired
from tvm_mxplan.core.step_facts import Layouts

from .candidates import is_stored_alike


def apply_layouts(
    program: ir.Program,
    choices: Sequence[Layouts],
    *,
    views: Mapping[int, str] = MappingProxyType({}),
    back_to_plain: bool = False,
    hops: Callable[[ir.Value, str], Sequence[Hop]] = directly,
) -> ir.Program:
    """The program with every step's operands in the layouts chosen for it.

    Parameters
    ----------
    choices : for each step the layouts of ``operands_of(step)``, in that order.
    views : the layouts in which views want what they view; as it was declared where nothing is said.
    back_to_plain : reorder every result back at once, as a framework without a layout plan does.
    hops : the conversions that bring a value into another layout, and who runs them.
    """
    applier = _Applier(program, views, back_to_plain, hops)
    for step, layouts in zip(program.steps, choices, strict=True):
        applier.step(step, layouts)
    return replace(program, values=tuple(applier.values), steps=tuple(applier.steps))


class _Applier:
    def __init__(
        self,
        program: ir.Program,
        views: Mapping[int, str],
        back_to_plain: bool,
        hops: Callable[[ir.Value, str], Sequence[Hop]],
    ) -> None:
        self.old = program
        self.views = views
        self.hops = hops
        self.back_to_plain = back_to_plain
        self.values: list[ir.Value] = []
        self.steps: list[ir.Step] = []
        self.home: dict[int, int] = {}
        self.copies: dict[tuple[int, str], int] = {}
        for number, value in enumerate(program.values):
            if value.kind != "local":
                self.home[number] = self._add(value)

    def _add(self, value: ir.Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def step(self, step: ir.Step, layouts: Layouts) -> None:
        if not self.back_to_plain and is_stored_alike(self.old, step, layouts):
            self.home[step.dst] = self._get(step.operand("src"), layouts[0], step.name)
            return
        made: list[tuple[int, int]] = []

        def read(at: int, _role: str, value: int) -> int:
            return self._get(value, layouts[at], step.name)

        def write(at: int, _role: str, value: int) -> int:
            target, final = self._destination(value, layouts[at])
            if final is not None:
                made.append((target, final))
            return target

        self.steps.append(rewired(step, read, write))
        for target, final in made:
            self._reorder(target, final, f"reorder_{step.name}")

    def _destination(self, old: int, layout: str) -> tuple[int, int | None]:
        """Returns the value that a step writes, and the value it is reordered into afterwards, if any."""
        value = self.old.values[old]
        shown = value.kind == "output" or value.alias_of >= 0
        if not shown and self.back_to_plain and not same_bytes(layout, value.layout, value.shape):
            self.home[old] = self._add(value)
            return self._add(replace(value, layout=layout)), self.home[old]
        if not shown:
            self.home[old] = self._add(replace(value, layout=layout))
            return self.home[old], None
        output = self.home[old] if value.kind == "output" else self._view(old)
        if same_bytes(layout, value.layout, value.shape):
            target = output if layout == value.layout else self._relabel(output, layout)
            self.home[old] = target
            return target, None
        target = self._add(ir.Value(value.name, value.shape, value.dtype, "local", layout))
        self.home[old] = target
        return target, output

    def _view(self, old: int) -> int:
        value, base = self.old.values[old], self.old.values[self.old.values[old].alias_of]
        stored = self.views.get(old, base.layout)
        layout = layout_through(Seen(base.shape, base.layout), Seen(value.shape, value.layout), stored)
        if layout is None:  # true of typical sizes, not of all
            stored, layout = base.layout, value.layout
        alias_of = (
            self.home[value.alias_of]
            if value.alias_of in self.home and base.kind != "local" and stored == base.layout
            else self._get(value.alias_of, stored, value.name)
        )
        return self._add(replace(value, alias_of=alias_of, layout=layout))

    def _unmade(self, old: int) -> list[int]:
        """``old`` and what it views, as far as they have no new value yet."""
        found = []
        while old >= 0 and old not in self.home:
            found.append(old)
            old = self.old.values[old].alias_of
        return found

    def _relabel(self, number: int, layout: str) -> int:
        value = self.values[number]
        return self._add(ir.Value(value.name, value.shape, value.dtype, "local", layout, alias_of=number))

    def _get(self, old: int, layout: str, reader: str) -> int:
        """The new value that holds ``old`` in ``layout``, reordered on first demand."""
        if (old, layout) in self.copies:
            return self.copies[old, layout]
        for number in reversed(self._unmade(old)):
            self.home[number] = self._view(number)
        home = self.home[old]
        value = self.values[home]
        if value.layout == layout:
            return home
        if same_bytes(value.layout, layout, value.shape):
            number = self._relabel(home, layout)
        else:
            number = self._add(ir.Value(value.name, value.shape, value.dtype, "local", layout))
            self._reorder(home, number, f"reorder_{value.name}_{reader}")
        self.copies[old, layout] = number
        return number

    def _reorder(self, src: int, dst: int, name: str) -> None:
        hops = self.hops(self.values[src], self.values[dst].layout)
        for hop in hops[:-1]:
            value = self.values[dst].inside(alias_of=-1, alias_offset=0, layout=hop.layout)
            here = self._add(value)
            self.steps.append(reorder(f"{name}_by_{hop.layout}", src, here, hop.library))
            src = here
        self.steps.append(reorder(name, src, dst, hops[-1].library))
