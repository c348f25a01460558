"""Operations that run in order, forward then backward, and what dropping values between the two takes.

    forward    0: a = f(x)    1: b = g(a)    2: c = h(b)
    backward   3: r = p(c)    4: s = q(b, r)    5: t = o(a, s)

    nothing dropped    0 1 2 3 4 5         a lives from 0 through 5, b from 1 through 4
    a dropped          0 1 2 3 4 0' 5      a lives from 0 through 1, and its other making from 0' through 5
    a and b dropped    0 1 2 3 0' 1' 4 5   both are made again in front of the first that reads one of them

A value that is dropped is made again as late as a backward reader allows, from values that are kept or made
again themselves; what it is made from lives until then.  It may be dropped and made again more than once.  A
value lives from the operation that writes it through the last one that reads it before it is written again;
while an operation runs, all that it writes is there too.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

Order = tuple[tuple[int, bool], ...]
"""Operations as they run, and whether each runs again."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes
    ----------
    reads : the values that it reads, written by operations before it.
    us : microseconds that it takes, by an estimate.
    scratch : bytes that it needs while it runs, beside what it reads and writes.
    """

    reads: tuple[int, ...]
    us: float = 0.0
    scratch: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """Bytes that an operation writes; none where they stand elsewhere than in what is to be small."""

    writer: int
    nbytes: int


@dataclass(frozen=True)
class Problem:
    """Operations in their order, of which those from ``backward`` on are the backward part."""

    operations: tuple[Operation, ...]
    values: tuple[Value, ...]
    backward: int

    @cached_property
    def written(self) -> tuple[tuple[int, ...], ...]:
        """The values that each operation writes."""
        found: list[list[int]] = [[] for _ in self.operations]
        for at, value in enumerate(self.values):
            found[value.writer].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The operations that read each value, in order."""
        found: list[list[int]] = [[] for _ in self.values]
        for at, operation in enumerate(self.operations):
            for value in sorted(set(operation.reads)):
                found[value].append(at)
        return tuple(map(tuple, found))

    def is_forward(self, value: int) -> bool:
        """Whether the forward part writes a value, so that it may be made again."""
        return self.values[value].writer < self.backward


@dataclass(frozen=True)
class Run:
    """Operations as they run, some of them again.

    Attributes
    ----------
    sequence : operations in order, and whether each is one that runs again.
    loads : bytes alive in each of them, its scratch among them.
    us : microseconds of those that run again.
    """

    sequence: Order
    loads: tuple[int, ...]
    us: float

    @property
    def peak(self) -> int:
        return max(self.loads, default=0)

    @property
    def again(self) -> tuple[int, ...]:
        """The operations that run again, as often as they do."""
        return tuple(operation for operation, again in self.sequence if again)


def run_of(problem: Problem, sequence: Order) -> Run:
    """The run of a sequence: each operation reads what was written last of a value."""
    changes = [0] * (len(sequence) + 1)
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}

    def dies(value: int) -> None:
        changes[begins[value]] += problem.values[value].nbytes
        changes[ends[value] + 1] -= problem.values[value].nbytes

    us = 0.0
    for at, (operation, again) in enumerate(sequence):
        ends.update(dict.fromkeys(problem.operations[operation].reads, at))
        for value in problem.written[operation]:
            if value in begins:
                dies(value)
            begins[value] = ends[value] = at
        us += problem.operations[operation].us if again else 0.0
    for value in begins:
        dies(value)
    alive = itertools.accumulate(changes[:-1])
    scratch = (problem.operations[operation].scratch for operation, _ in sequence)
    return Run(sequence, tuple(map(operator.add, alive, scratch)), us)


def simulated(problem: Problem, dropped: Set[int]) -> Run:
    """The run in which the values ``dropped``, all of the forward part, are made again, each once."""
    sequence: list[tuple[int, bool]] = []
    made: set[int] = set()

    def make(value: int) -> None:
        """Run again what a dropped value needs, each operation once."""
        stack = [problem.values[value].writer]
        while stack:
            writer = stack[-1]
            missing = [] if writer in made else _missing(problem, writer, dropped, made)
            if missing:
                stack += missing
                continue
            stack.pop()
            if writer not in made:
                made.add(writer)
                sequence.append((writer, True))

    for at, operation in enumerate(problem.operations):
        if at >= problem.backward:
            for value in operation.reads:
                if value in dropped and problem.values[value].writer not in made:
                    make(value)
        sequence.append((at, False))
    return run_of(problem, tuple(sequence))


def _missing(problem: Problem, writer: int, dropped: Set[int], made: Set[int]) -> list[int]:
    """Operations that have to run again before ``writer`` does; the first comes last."""
    found = dict.fromkeys(
        problem.values[value].writer for value in problem.operations[writer].reads if value in dropped
    )
    return [one for one in reversed(found) if one not in made]
