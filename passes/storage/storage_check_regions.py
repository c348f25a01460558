"""Checks a region that works in an arena of its caller, step by step; a part of ``storage_check``.

The shadow of the memory says who wrote which bytes last.  A step must find what it reads as it was written;
then it claims the bytes of its result and of its scratchpad, which must be none of what it reads.  Values of
one root (in place, pieces of a whole) share bytes by the program's own rules and are not held against one
another here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import tvm

from tvm_mxplan.core.program import program as ir

Roots = frozenset[tvm.ir.Var]


@dataclass(frozen=True)
class Bytes:
    """Bytes ``[low, high)`` of a storage, in units of the storage."""

    storage: tvm.ir.Var
    low: int
    high: int

    def overlaps(self, other: Bytes) -> bool:
        same = self.storage.same_as(other.storage)
        return same and self.low < other.high and other.low < self.high

    def within(self, other: Bytes) -> int:
        """The number of these bytes that are ``other``'s, too."""
        return min(self.high, other.high) - max(self.low, other.low) if self.overlaps(other) else 0

    def without(self, taken: Bytes) -> list[Bytes]:
        """The rest of these bytes, in at most two pieces."""
        if not self.overlaps(taken):
            return [self]
        pieces = [(self.low, min(self.high, taken.low)), (max(self.low, taken.high), self.high)]
        return [Bytes(self.storage, low, high) for low, high in pieces if low < high]


@dataclass(frozen=True)
class Local:
    """A value of a region that a step wrote, and the value that owns its bytes."""

    root: int
    value: int


@dataclass
class RegionRun:
    """One call of a region.

    Attributes
    ----------
    arena : what the call lends.
    arguments : for each input, then each output, the allocations that it may be.
    placed : where allocations stand; those that stand nowhere are not looked at.
    touched : allocations that something was written to.
    intact : allocations that hold their bytes as they were written.
    left : what steps wrote and nothing else has taken, of each local value in pieces.
    """

    program: ir.Program
    arena: Bytes
    arguments: Sequence[Roots]
    placed: Mapping[tvm.ir.Var, Bytes]
    touched: set[tvm.ir.Var]
    intact: dict[tvm.ir.Var, Bytes]
    left: dict[Local, list[Bytes]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    def run(self) -> list[str]:
        for step in self.program.steps:
            reads = self.program.reads(step)
            for value in reads:
                self._read(step, value)
            for result in step.results:
                others = [other for other in step.results if other != result]
                self._write(result, [*reads, *others])
            if step.scratchpad_bytes > 0:
                scratchpad = self._within(step.scratchpad_offset, step.scratchpad_bytes)
                self._claim(f"the scratchpad of {step.name}", scratchpad, -1, [*reads, *step.results])
        return self.reasons

    def _read(self, step: ir.Step, value: int) -> None:
        root = self.program.root(value)
        stands = all(argument in self.intact for argument, _ in self._arguments(root))
        if self.program.values[root].kind == "local":
            (wanted,) = self._places(value)
            stands = all(self._has(writer, wanted) for writer in self._writers(value, root))
        if not stands:
            name = self.program.values[value].name
            self.reasons.append(f"{step.name} reads {name}, whose bytes something else has taken")

    def _has(self, writer: Local, wanted: Bytes) -> bool:
        """True if all that a writer wrote of the bytes ``wanted`` is left."""
        (written,) = self._places(writer.value)
        return sum(piece.within(wanted) for piece in self.left[writer]) == written.within(wanted)

    def _writers(self, value: int, root: int) -> Iterator[Local]:
        """Yields the writers of a local value's bytes, the last first, up to one that wrote all of them."""
        (wanted,) = self._places(value)
        for writer in reversed(self.written):
            if self.program.root(writer) == root:
                (bytes_,) = self._places(writer)
                if bytes_.overlaps(wanted):
                    yield Local(root, writer)
                if bytes_.low <= wanted.low and wanted.high <= bytes_.high:
                    return

    def _write(self, result: int, kept: Sequence[int]) -> None:
        root = self.program.root(result)
        name = self.program.values[result].name
        for argument, place in self._arguments(root):
            if argument not in self.touched:
                self._claim(name, place, root, kept)
                self.touched.add(argument)
                self.intact[argument] = place
        if self.program.values[root].kind == "local":
            (place,) = self._places(result)
            self._claim(name, place, root, kept)
            self.written.append(result)
            self.left[Local(root, result)] = [place]

    def _claim(self, name: str, taken: Bytes, root: int, kept: Sequence[int]) -> None:
        """Take bytes away from whoever holds them, unless those are values ``kept`` of another root."""
        for value in kept:
            other = self.program.root(value)
            if other != root and any(taken.overlaps(place) for place in self._places(value)):
                self.reasons.append(
                    f"{name} stands on {self.program.values[value].name}, which its step needs"
                )
        for argument in [var for var, place in self.intact.items() if taken.overlaps(place)]:
            del self.intact[argument]
        for local, pieces in self.left.items():
            if local.root != root:
                self.left[local] = [rest for piece in pieces for rest in piece.without(taken)]

    def _arguments(self, root: int) -> list[tuple[tvm.ir.Var, Bytes]]:
        """The placed allocations that an input or output may be; none for other values."""
        owner = self.program.values[root]
        if owner.kind not in ("input", "output"):
            return []
        first = len(self.program.of_kind("input")) if owner.kind == "output" else 0
        return [(var, self.placed[var]) for var in self.arguments[first + owner.index] if var in self.placed]

    def _places(self, value: int) -> list[Bytes]:
        root = self.program.root(value)
        owner = self.program.values[root]
        if owner.kind != "local":
            return [place for _, place in self._arguments(root)]
        offset, at = owner.offset, value
        while self.program.values[at].alias_of >= 0:
            offset += int(str(self.program.values[at].alias_offset))
            at = self.program.values[at].alias_of
        return [self._within(offset, self.program.values[value].nbytes)]

    def _within(self, offset: int, nbytes: int) -> Bytes:
        place = Bytes(self.arena.storage, self.arena.low + offset, self.arena.low + offset + nbytes)
        if offset < 0 or place.high > self.arena.high:
            self.reasons.append(f"bytes {place.low} to {place.high} of {self.program.name} leave the arena")
        return place
