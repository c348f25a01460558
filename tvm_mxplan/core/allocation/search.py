"""The exact search: is there a plan of at most a given height?

Items are placed one by one on top of what is placed already, never below it.  Any plan can be pushed
down until every item stands on the floor or on another one, and such a plan is found by asking, again
and again, of an item that nothing open can get below:

    does it stand at its least base, or does something open push it up?

    address                           x, y are placed; a, b, c are open.
       |          +-----+             least[a] = top of x, least[b] = 0, least[c] = top of y.
       |   +------+  c  |             b is next.  Either b stands at 0, and then a stands at the
       |   |  a   +-----+             top of x or of b, whichever is higher.  Or something pushes b
       |   +----+-+--+  |             up: only a or c can, so bound[b] becomes the lesser of
       |   | x  |  b | y|             bound[a] + size of a and bound[c] + size of c.
       +---+----+----+--+--> section

What cuts the search down:

- sections: the open blocks of a section are disjoint, so the ones from any ``bound`` on, stacked,
  must end within the capacity;
- dominance: if nothing open can get below the top of an item, it need not be pushed up at all;
- decomposition: where no open item crosses between two sections, both sides are solved apart, and
  the failure of one side undoes nothing of the other.

Rigid groups can interlock so that of a ring of items each is below the next.  Then nothing is safe to
place, the search goes on as well as it can, and running out of choices no longer proves anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from .heuristics import Bases
from .instance import Instance, align_up
from .neighbours import Neighbours

Component: TypeAlias = "list[int]"
Agenda: TypeAlias = "tuple[Component, int, Agenda] | None"


class Tie(Enum):
    """Which of several items that could stand equally low is placed first."""

    ORDER = "the first in the order"
    TIGHTEST = "the one in the section with the fewest bytes to spare"


class Verdict(Enum):
    """How a search ended."""

    FOUND = "found a plan"
    IMPOSSIBLE = "there is no plan of this height"
    UNKNOWN = "no plan found, which proves nothing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a search: bases if it found a plan, and the placements it made."""

    verdict: Verdict
    nodes: int
    bases: Bases | None = None


@dataclass(frozen=True, slots=True)
class _Choice:
    """An item was placed; what to return to if that turns out to be wrong."""

    component: Component
    item: int
    dominant: bool
    mark: int
    parent: int
    rest: Agenda


class Search:
    """One search with its own order of the items.

    Parameters
    ----------
    instance : Instance
        What to lay out.
    near : Neighbours
        Its geometry.
    order : sequence of int
        Permutation of the items; of equals the first is placed first.
    tie : Tie
        What counts before the order.
    capacity : int
        Height allowed.
    """

    def __init__(
        self, instance: Instance, near: Neighbours, order: Sequence[int], tie: Tie, capacity: int
    ) -> None:
        count = len(instance.shapes)
        self._near = near
        self._tie = tie
        self._capacity = capacity
        self._rank = [0] * count
        for rank, item in enumerate(order):
            self._rank[item] = rank
        self._alignment = [shape.alignment for shape in instance.shapes]
        self._last_base = [capacity - shape.extent for shape in instance.shapes]
        self._open = [1] * count
        self._alive = 0
        for blocks in near.blocks:
            self._alive |= blocks
        self._pusher = [0] * count
        self._least = [0] * count
        self._bound = [0] * count
        # The item with the least bound is safe if nothing can stand on another one's level below it.
        self._plain = [all(other.touched > 0 for other in row) for row in near.around]
        self._crossing = [0] * (instance.sections + 1)
        for first, last in near.hulls:
            for s in range(first + 1, last):
                self._crossing[s] += 1
        self._load = [0] * instance.sections
        for loads in near.loads:
            for s, size in loads.items():
                self._load[s] += size
        self._trail: list[tuple[list[int], int, int]] = []
        self._choices: list[_Choice] = []
        self._proof = True

    def run(self, max_nodes: int, expired: Callable[[], bool]) -> Outcome:
        """Search until a plan is found, the choices or ``max_nodes`` run out, or time has."""
        whole = sorted(range(len(self._open)), key=self._rank.__getitem__)
        if min(self._last_base) < 0 or not self._sections_fit(range(len(self._load)), self._capacity):
            return Outcome(Verdict.IMPOSSIBLE, 0)
        agenda: Agenda = (whole, -1, None)
        nodes = 0
        while agenda is not None:
            component, parent, rest = agenda
            item = self._choose(component)
            if item is None:
                agenda, alive = self._backtrack(parent)
            elif nodes >= max_nodes or (nodes % 64 == 63 and expired()):
                return Outcome(Verdict.UNKNOWN, nodes)
            else:
                nodes += 1
                dominant = self._is_dominant(item)
                self._choices.append(
                    _Choice(component, item, dominant, len(self._trail), parent, rest)
                )
                here = len(self._choices) - 1
                if self._place(component, item):
                    agenda, alive = self._split(component, item, here, rest), True
                else:
                    agenda, alive = self._backtrack(here)
            if not alive:
                return Outcome(Verdict.IMPOSSIBLE if self._proof else Verdict.UNKNOWN, nodes)
        return Outcome(Verdict.FOUND, nodes, list(self._least))

    def _choose(self, component: Component) -> int | None:
        """The next item to place, or None if each of them waits for another one to push it up."""
        bound, least = self._bound, self._least
        lowest = min(map(bound.__getitem__, component))
        low = [c for c in component if bound[c] == lowest == least[c]]
        safe = [c for c in low if self._plain[c] or self._is_safe(c)]
        if len(safe) > 1 and self._tie is Tie.TIGHTEST:
            return self._tightest(safe)
        if safe:
            return safe[0]
        ready = sorted((c for c in component if bound[c] == least[c]), key=bound.__getitem__)
        first = next((c for c in ready if self._is_safe(c)), None)
        if first is None and ready:
            self._proof = False
            return ready[0]
        return first

    def _is_safe(self, item: int) -> bool:
        """True if no open item can still get below this one, if it is placed at its least base."""
        bound, is_open, base = self._bound, self._open, self._least[item]
        for other, _, _, touched in self._near.around[item]:
            if is_open[other] and bound[other] + touched <= base:
                return False
        return True

    def _is_dominant(self, item: int) -> bool:
        """True if no open item can get below the top of this one, so that nothing is gained by waiting."""
        bound, is_open, base = self._bound, self._open, self._least[item]
        for other, above, _, _ in self._near.around[item]:
            if is_open[other] and bound[other] < base + above:
                return False
        return True

    def _tightest(self, items: list[int]) -> int:
        """The item in the section with the fewest bytes to spare, if all that is open is stacked there."""
        bound, is_open, pieces = self._bound, self._open, self._near.pieces
        loads = self._near.loads
        spare = {}
        for s in {s for item in items for s in loads[item]}:
            alive = [piece for piece in pieces[s] if is_open[piece[0]]]
            floor = min([bound[piece[0]] + piece[1] for piece in alive])
            spare[s] = -floor - sum([piece[2] for piece in alive])
        return min(items, key=lambda item: min(map(spare.__getitem__, loads[item])))

    def _place(self, component: Component, item: int) -> bool:
        """Place the item at its least base; False if that leaves too little room for the others."""
        least, bound, is_open, trail = self._least, self._bound, self._open, self._trail
        base = least[item]
        is_open[item] = 0
        self._alive ^= self._near.blocks[item]
        for s, size in self._near.loads[item].items():
            self._load[s] -= size
        first, last = self._near.hulls[item]
        crossing = self._crossing
        for s in range(first + 1, last):
            trail.append((crossing, s, crossing[s]))
            crossing[s] -= 1
        raised = {item}
        for other, above, _, _ in self._near.around[item]:
            if is_open[other] and least[other] < base + above:
                need = align_up(base + above, self._alignment[other])
                if need > self._last_base[other]:
                    return False
                trail.append((least, other, least[other]))
                least[other] = need
                if bound[other] < need:
                    trail.append((bound, other, bound[other]))
                    bound[other] = need
                    raised.add(other)
        return self._propagate(component, raised)

    def _push_up(self, component: Component, item: int) -> bool:
        """Note that the item does not stand at its least base; False if nothing can push it up."""
        need = self._pushed_bound(item)
        if need is None or need > self._last_base[item]:
            return False
        need = max(need, align_up(self._least[item] + 1, self._alignment[item]))
        self._trail.append((self._bound, item, self._bound[item]))
        self._bound[item] = need
        return need <= self._last_base[item] and self._propagate(component, {item})

    def _pushed_bound(self, item: int) -> int | None:
        """Least base on top of an open item, or None if there is no open item around."""
        bound, is_open = self._bound, self._open
        least = [
            (bound[other] + touched, other)
            for other, _, _, touched in self._near.around[item]
            if is_open[other]
        ]
        if not least:
            return None
        base, self._pusher[item] = min(least)
        return align_up(base, self._alignment[item])

    def _propagate(self, component: Component, raised: set[int]) -> bool:
        """Raise the bounds that depend on those of ``raised``; False if the sections overflow."""
        least, bound, is_open = self._least, self._bound, self._open
        waiting = [c for c in component if least[c] < bound[c] and is_open[c]]
        again = bool(waiting)
        while again:
            again = False
            for item in waiting:
                pusher = self._pusher[item]
                if is_open[pusher] and bound[pusher] + self._near.touched[item][pusher] <= bound[item]:
                    continue
                need = self._pushed_bound(item)
                if need is None or need > self._last_base[item]:
                    return False
                if need > bound[item]:
                    self._trail.append((bound, item, bound[item]))
                    bound[item] = need
                    raised.add(item)
                    again = True
        loads, levels = self._near.loads, self._near.levels
        level = max([bound[item] + levels[item] for item in raised])
        return self._sections_fit(sorted({s for item in raised for s in loads[item]}), level)

    def _sections_fit(self, sections: Iterable[int], level: int) -> bool:
        """True if in each section the open blocks from any bound on, stacked, end in the capacity.

        Blocks above ``level`` are known to do so by themselves.
        """
        bound, is_open, near = self._bound, self._open, self._near
        kept: list[tuple[int, int]] = []
        for s in sections:
            if level + self._load[s] <= self._capacity:
                continue
            # Of neighbouring sections only those matter that hold something the others do not.
            alive = near.alive[s] & self._alive
            if kept and alive | kept[-1][0] == kept[-1][0]:
                continue
            while kept and alive | kept[-1][0] == alive:
                kept.pop()
            kept.append((alive, s))
        for _, s in kept:
            rows = [
                (bound[item] + low, size, spare)
                for item, low, size, spare in near.pieces[s]
                if is_open[item]
            ]
            rows.sort(reverse=True)
            left, saved = self._capacity, 0
            for begin, size, spare in rows:
                left -= size
                if spare > saved:
                    saved = spare
                if begin > left + saved:
                    return False
        return True

    def _split(self, component: Component, item: int, here: int, rest: Agenda) -> Agenda:
        """What is left of the component, apart where no open item crosses; the smallest part first."""
        remaining = [c for c in component if c != item]
        first, last = self._near.hulls[item]
        cuts = [s for s in range(first + 1, last) if not self._crossing[s]]
        if not cuts:
            return (remaining, here, rest) if remaining else rest
        parts: list[Component] = [[] for _ in range(len(cuts) + 1)]
        for c in remaining:
            parts[bisect_right(cuts, self._near.hulls[c][0])].append(c)
        for part in sorted((part for part in parts if part), key=len, reverse=True):
            rest = (part, here, rest)
        return rest

    def _backtrack(self, failed: int) -> tuple[Agenda, bool]:
        """Undo the choice ``failed`` and all after it, and turn it round; False if none is left."""
        while failed >= 0:
            choice = self._choices[failed]
            for undone in self._choices[failed:]:
                self._open[undone.item] = 1
                self._alive |= self._near.blocks[undone.item]
                for s, size in self._near.loads[undone.item].items():
                    self._load[s] += size
            del self._choices[failed:]
            self._undo(choice.mark)
            if not choice.dominant and self._push_up(choice.component, choice.item):
                return (choice.component, choice.parent, choice.rest), True
            failed = choice.parent
        return None, False

    def _undo(self, mark: int) -> None:
        trail = self._trail
        while len(trail) > mark:
            values, index, value = trail.pop()
            values[index] = value
