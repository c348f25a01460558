"""Searches over sets of finished steps: what is alive depends on the set alone, not on how it was reached.

``exact`` visits sets in the order of the peak on the way to them, so the first way to the end has the least.
``beam`` keeps the best few sets of each size.

Both take *free* steps at once: a step that needs no more than the peak so far, and leaves no more alive
than there was.  Some best order has it next: moved there from later on, it leaves what comes between no more
alive than before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .problem import Graph


@dataclass(frozen=True, slots=True)
class State:
    """A set of finished steps, as bits, and one way to it.

    Attributes
    ----------
    live : bytes alive between steps.
    peak : most bytes at once on the way.
    way : the last steps on it, and the state before those.
    """

    done: int
    live: int
    peak: int
    way: tuple[tuple[int, ...], State] | None = None

    @classmethod
    def start(cls) -> State:
        return cls(0, 0, 0)

    def forget_peak(self, peak: int = 0) -> State:
        """The same set as a beginning, at which ``peak`` bytes are there for the taking."""
        return State(self.done, self.live, peak)

    def order(self) -> list[int]:
        """All steps on the way."""
        steps: list[int] = []
        state = self
        while state.way is not None:
            taken, state = state.way
            steps[:0] = taken
        return steps


@dataclass(frozen=True, slots=True)
class Found:
    """An order of one part; ``proven`` if none has a smaller peak."""

    order: Sequence[int]
    peak: int
    proven: bool
    states: int


class Machine:
    """Computes the states that steps lead to."""

    def __init__(self, graph: Graph) -> None:
        self.count = graph.steps
        self.before = [0] * graph.steps
        for earlier, later in graph.edges():
            self.before[later] |= 1 << earlier
        self.ancestors = self._closure(self.before, range(graph.steps))
        after = [0] * graph.steps
        for step, before in enumerate(self.before):
            for earlier in bits(before):
                after[earlier] |= 1 << step
        self.descendants = self._closure(after, range(graph.steps - 1, -1, -1))
        self._written = [0] * graph.steps
        self._needed = list(graph.transient)
        self._ends: list[list[tuple[int, int]]] = [[] for _ in range(graph.steps)]
        for tensor in graph.tensors:
            touching = {tensor.writer, *tensor.readers}
            mask = sum(1 << step for step in touching)
            self._written[tensor.writer] += tensor.nbytes
            self._needed[tensor.writer] += tensor.nbytes
            for step in touching:
                self._ends[step].append((mask, tensor.nbytes))

    @staticmethod
    def _closure(direct: Sequence[int], order: Sequence[int]) -> list[int]:
        closed = list(direct)
        for step in order:
            for other in bits(direct[step]):
                closed[step] |= closed[other]
        return closed

    def take(self, state: State, step: int) -> State:
        """``state`` after one more step."""
        done = state.done | 1 << step
        freed = sum(nbytes for mask, nbytes in self._ends[step] if mask & ~done == 0)
        peak = max(state.peak, state.live + self._needed[step])
        return State(done, state.live + self._written[step] - freed, peak, ((step,), state))

    def run(self, state: State, steps: Sequence[int]) -> State:
        for step in steps:
            state = self.take(state, step)
        return state

    def ready(self, state: State, part: int) -> list[int]:
        """Steps of ``part`` that can come next."""
        return [step for step in bits(part & ~state.done) if self.before[step] & ~state.done == 0]

    def settle(self, state: State, part: int) -> State:
        """``state`` after all free steps."""
        before, taken, free = state, [], True
        while free:
            free = False
            for step in self.ready(state, part):
                after = self.take(state, step)
                if after.peak == state.peak and after.live <= state.live:
                    state, free = after, True
                    taken.append(step)
        return replace(state, way=(tuple(taken), before)) if taken else state


def exact(machine: Machine, start: State, part: Sequence[int], known: int, max_states: int) -> Found:
    """The best order of ``part``; the given one, which needs ``known``, if that is it or states run out."""
    members = sum(1 << step for step in part)
    goal = start.done | members
    first = machine.settle(start, members)
    heap = [(first.peak, 0, first)]
    best = {first.done: first.peak}
    pushed = 0
    while heap:
        peak, _, state = heapq.heappop(heap)
        if peak >= known:
            break
        if state.done == goal:
            return Found(state.order(), peak, True, len(best))
        if peak > best[state.done]:
            continue
        for step in machine.ready(state, members):
            after = machine.settle(machine.take(state, step), members)
            if after.peak < min(known, best.get(after.done, known)):
                if len(best) >= max_states:
                    return Found(part, known, False, len(best))
                best[after.done] = after.peak
                pushed += 1
                # The newest first among equals: it is the deepest.
                heapq.heappush(heap, (after.peak, -pushed, after))
    return Found(part, known, True, len(best))


def beam(machine: Machine, start: State, part: Sequence[int], known: int, width: int) -> Found:
    """A good order of ``part``; the given one, which needs ``known``, if none better turns up."""
    members = sum(1 << step for step in part)
    goal = start.done | members
    first = machine.settle(start, members)
    sizes: dict[int, dict[int, State]] = {first.done.bit_count(): {first.done: first}}
    states = 0
    for size in range(start.done.bit_count(), goal.bit_count()):
        kept = sorted(sizes.pop(size, {}).values(), key=lambda state: (state.peak, state.live))[:width]
        for state in kept:
            for step in machine.ready(state, members):
                after = machine.settle(machine.take(state, step), members)
                level = sizes.setdefault(after.done.bit_count(), {})
                states += 1
                if after.peak < known and after.peak < level.get(after.done, _WORST).peak:
                    level[after.done] = after
    end = sizes.get(goal.bit_count(), {}).get(goal)
    return Found(part, known, False, states) if end is None else Found(end.order(), end.peak, False, states)


def bits(mask: int) -> Iterator[int]:
    """Places of the ones, in ascending order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


_WORST = State(0, 0, 2**63)
