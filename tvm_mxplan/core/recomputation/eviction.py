"""A choice for any problem: operations run in order in a memory of so many bytes, and values are evicted.

    forward    0: a    1: b    2: c    3: d          room for two values
    evicted            a       b
    backward   ... reads d    reads c    b is there no more: a again, b again    reads b    reads a

Where an operation needs room, the value goes that is cheapest to make again for its bytes and for the time
until it is needed.  Where an operation reads a value that is not there, the operations that make it run
again, from the nearest values that are; what they make stays, as long as there is room, for readers that
come.  So whole stretches between values that stayed run again at once, and more than once where little stays.
In the forward part nothing runs again: a value goes only behind its last reader there.

What was evicted earlier may have had room by what was evicted later.  ``without_needless`` takes such
operations out of a run again, the dearest first.

The scheme is that of dynamic tensor rematerialization (Kirisame et al., 2021), with readers known beforehand.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .problem import Order, Problem, Run, run_of

_MOST_AGAIN = 4
"""A run is given up where more operations run again than the problem has, so many times over."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Order in which values are evicted.

    Attributes
    ----------
    with_missing : its cost is that of all that has to run again to make it; else that of its own operation.
    waiting : the power of the time until it is needed, in operations.
    """

    with_missing: bool
    waiting: float


PREFERENCES = tuple(Preference(missing, power) for missing in (True, False) for power in (0.0, 0.5, 1.0))


def evicting(problem: Problem, room: int, preference: Preference) -> Run | None:
    """The run within so many bytes where that went well; None where far too much runs again."""
    memory = _Memory(problem, room, preference)
    return run_of(problem, tuple(memory.sequence)) if memory.ran() else None


class _Memory:
    """Values that are there while operations run.

    Attributes
    ----------
    there : values with bytes; those without stand elsewhere and are there always once they are made.
    load : their bytes.
    """

    def __init__(self, problem: Problem, room: int, preference: Preference) -> None:
        self.problem, self.room, self.preference = problem, room, preference
        self.there: set[int] = set()
        self.load = 0
        self.sequence: list[tuple[int, bool]] = []
        self._at = 0
        self._seen = [0] * len(problem.values)
        forward = [[at for at in readers if at < problem.backward] for readers in problem.readers]
        self._begun = [
            max([value.writer, *readers]) for value, readers in zip(problem.values, forward, strict=True)
        ]

    def ran(self) -> bool:
        """Run all operations; whether it took no more than it may."""
        problem = self.problem
        most = (1 + _MOST_AGAIN) * len(problem.operations)
        for at, operation in enumerate(problem.operations):
            self._at = at
            missing = sorted(self._missing(operation.reads))
            needed = Counter(operation.reads)
            for one in missing:
                needed.update(problem.operations[one].reads)
            for one in missing:
                self._execute(one, needed, again=True)
                needed.subtract(problem.operations[one].reads)
            self._execute(at, needed, again=False)
            self._at += 1
            self._forget((*operation.reads, *problem.written[at]))
            if len(self.sequence) > most:
                return False
        return True

    def _execute(self, operation: int, needed: Mapping[int, int], *, again: bool) -> None:
        values = self.problem.values
        new = [one for one in self.problem.written[operation] if values[one].nbytes and one not in self.there]
        nbytes = sum(values[one].nbytes for one in new)
        over = self.load + nbytes + self.problem.operations[operation].scratch - self.room
        if over > 0:
            self._make_room(over, needed)
        self.sequence.append((operation, again))
        self.there.update(new)
        self.load += nbytes

    def _forget(self, values: Iterable[int]) -> None:
        """Let go of values of the backward part that nothing reads any more."""
        for value in values:
            dead = not self.problem.is_forward(value) and self._next(value) is None
            if dead and value in self.there:
                self.there.discard(value)
                self.load -= self.problem.values[value].nbytes

    def _make_room(self, nbytes: int, needed: Mapping[int, int]) -> None:
        """Evict values until so many bytes are gone, or none is left that may go."""
        candidates = [
            value
            for value in self.there
            if self.problem.is_forward(value) and needed.get(value, 0) <= 0 and self._begun[value] < self._at
        ]
        # What goes makes others dearer, never cheaper: one that costs what it did is the cheapest.
        heap = [(self._next(value) is not None, self._worth(value), value) for value in candidates]
        heapq.heapify(heap)
        while nbytes > 0 and heap:
            is_read, known, value = heap[0]
            worth = self._worth(value)
            if worth > known:
                heapq.heapreplace(heap, (is_read, worth, value))
                continue
            heapq.heappop(heap)
            self.there.discard(value)
            self.load -= self.problem.values[value].nbytes
            nbytes -= self.problem.values[value].nbytes

    def _worth(self, value: int) -> float:
        """Microseconds for making a value again, for each byte and for the time that it is not needed."""
        problem, found = self.problem, self.problem.values[value]
        us = problem.operations[found.writer].us
        if self.preference.with_missing:
            reads = problem.operations[found.writer].reads
            us += sum(problem.operations[one].us for one in self._missing(reads))
        needed = self._next(value)
        waiting = (len(problem.operations) if needed is None else needed) - self._at + 1
        return float((us + 1e-3) / (found.nbytes * waiting**self.preference.waiting))

    def _missing(self, reads: Iterable[int]) -> set[int]:
        """The operations that have to run again before values can be read."""
        found: set[int] = set()
        stack = list(reads)
        while stack:
            value = stack.pop()
            writer = self.problem.values[value].writer
            if value not in self.there and self.problem.values[value].nbytes and writer not in found:
                found.add(writer)
                stack += self.problem.operations[writer].reads
        return found

    def _next(self, value: int) -> int | None:
        """The next operation that reads a value, the one that runs now included."""
        readers, at = self.problem.readers[value], self._seen[value]
        while at < len(readers) and readers[at] < self._at:
            at += 1
        self._seen[value] = at
        return readers[at] if at < len(readers) else None


def without_needless(problem: Problem, run: Run, budget: int) -> Run:
    """The run without operations that need not run again for the budget, the dearest taken out first."""
    run = _pruned(problem, run)
    most = max(budget, run.peak)
    refused: set[tuple[int, int]] = set()
    while True:
        found = _removable(problem, run, most, refused)
        if found is None:
            return run
        sequence = run.sequence[: found[1]] + run.sequence[found[1] + 1 :]
        tried = _pruned(problem, run_of(problem, sequence))
        if tried.peak <= most and tried.us <= run.us:
            run = tried
        else:
            refused.add((found[0], sum(one == (found[0], True) for one in run.sequence[: found[1]])))


def _removable(
    problem: Problem, run: Run, most: int, refused: set[tuple[int, int]]
) -> tuple[int, int] | None:
    """The dearest operation that runs again though its values have room until then, and its place."""
    last_touch: dict[int, int] = {}
    times: Counter[int] = Counter()
    best: tuple[float, int, int] | None = None
    for at, (operation, again) in enumerate(run.sequence):
        us = problem.operations[operation].us
        if again and (operation, times[operation]) not in refused and (best is None or us > best[0]):
            gaps = [(last_touch[one] + 1, problem.values[one].nbytes) for one in problem.written[operation]]
            gaps = [gap for gap in gaps if gap[1]]
            if _has_room(run.loads, gaps, at, most):
                best = us, operation, at
        times[operation] += again
        for value in (*problem.operations[operation].reads, *problem.written[operation]):
            last_touch[value] = at
    return None if best is None else best[1:]


def _has_room(loads: Sequence[int], gaps: Sequence[tuple[int, int]], end: int, most: int) -> bool:
    """Whether values have room from where each gap begins until ``end``."""
    return all(
        max(loads[begin:end], default=0) + sum(nbytes for other, nbytes in gaps if other <= begin) <= most
        for begin, _ in gaps
    )


def _pruned(problem: Problem, run: Run) -> Run:
    """The run without operations that run again for nothing: nobody reads it before it is made once more."""
    kept: list[tuple[int, bool]] = []
    read: defaultdict[int, bool] = defaultdict(bool)
    for operation, again in reversed(run.sequence):
        written = problem.written[operation]
        if again and not any(read[value] for value in written):
            continue
        read.update(dict.fromkeys(written, False))
        read.update(dict.fromkeys(problem.operations[operation].reads, True))
        kept.append((operation, again))
    sequence: Order = tuple(reversed(kept))
    return run if len(sequence) == len(run.sequence) else run_of(problem, sequence)
