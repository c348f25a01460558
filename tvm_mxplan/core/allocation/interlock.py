"""An exact search for few rigid groups, which may interlock: it decides how each pair stands.

For two items the base of one less the base of the other lies in one of a few zones.  Each item has a
least and a greatest base.  A decision for a pair narrows both, these narrow others, and zones that are
no longer in reach are struck out.  When every pair has one zone left, the least bases are a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .instance import Instance, align_up
from .neighbours import Neighbours, zones
from .search import Outcome, Verdict

Zone = tuple[int, int]
Pair = tuple[int, int]
# Rounds of narrowing after which a state is taken as it is; rings of items may narrow byte by byte.
_MAX_ROUNDS = 1000


@dataclass(slots=True)
class _State:
    """Bases that are still possible, and zones of each pair that are."""

    least: list[int]
    most: list[int]
    zones: dict[Pair, list[Zone]]

    def copy(self) -> _State:
        return _State(list(self.least), list(self.most), dict(self.zones))


def search_zones(
    instance: Instance, near: Neighbours, capacity: int, max_nodes: int, expired: Callable[[], bool]
) -> Outcome:
    """Search for a plan of at most ``capacity`` bytes.

    Parameters
    ----------
    instance : Instance
        What to lay out; a few dozen items at most.
    near : Neighbours
        Its geometry.
    capacity : int
        Height allowed.
    max_nodes : int
        Limit of the decisions.
    expired : callable
        True if time is up.
    """
    shapes = instance.shapes
    pairs = {
        (x, other.item): zones(shapes[x], shapes[other.item])
        for x, row in enumerate(near.around)
        for other in row
        if x < other.item
    }
    most = [(capacity - s.extent) // s.alignment * s.alignment for s in shapes]
    stack = [_State([0] * len(shapes), most, pairs)]
    nodes, proof = 0, True
    while stack:
        if nodes >= max_nodes or expired():
            return Outcome(Verdict.UNKNOWN, nodes)
        nodes += 1
        state = stack.pop()
        settled = _narrow(instance, near, state, capacity)
        if settled is None:
            continue
        pair = _widest(state)
        if pair is None:
            if settled:
                return Outcome(Verdict.FOUND, nodes, state.least)
            proof = False
            continue
        # The last one pushed is tried first: the one that leaves the items lowest.
        for zone in sorted(state.zones[pair], key=lambda zone: -_raise(state, pair, zone)):
            branch = state.copy()
            branch.zones[pair] = [zone]
            stack.append(branch)
    return Outcome(Verdict.IMPOSSIBLE if proof else Verdict.UNKNOWN, nodes)


def _narrow(instance: Instance, near: Neighbours, state: _State, capacity: int) -> bool | None:
    """Narrow until nothing changes (True) or for long enough (False); None if nothing is possible."""
    least, most, shapes = state.least, state.most, instance.shapes
    for _ in range(_MAX_ROUNDS):
        before = (list(least), list(most))
        for (x, y), possible in state.zones.items():
            nearest, farthest = least[y] - most[x], most[y] - least[x]
            left = [zone for zone in possible if zone[0] <= farthest and zone[1] >= nearest]
            if not left:
                return None
            if len(left) < len(possible):
                state.zones[x, y] = left
            low, high = left[0][0], left[-1][1]
            least[y] = max(least[y], align_up(least[x] + low, shapes[y].alignment))
            least[x] = max(least[x], align_up(least[y] - high, shapes[x].alignment))
            most[y] = min(most[y], (most[x] + high) // shapes[y].alignment * shapes[y].alignment)
            most[x] = min(most[x], (most[y] - low) // shapes[x].alignment * shapes[x].alignment)
        if any(low > high for low, high in zip(least, most, strict=True)):
            return None
        if (least, most) == before:
            return None if _overflows(near, least, capacity) else True
    return False


def _overflows(near: Neighbours, least: list[int], capacity: int) -> bool:
    """True if the blocks of some section from some level on, stacked, end beyond the capacity."""
    for pieces in near.pieces:
        left, saved = capacity, 0
        for item, low, size, spare in sorted(pieces, key=lambda piece: -least[piece[0]] - piece[1]):
            left, saved = left - size, max(saved, spare)
            if least[item] + low > left + saved:
                return True
    return False


def _widest(state: _State) -> Pair | None:
    """The undecided pair that any decision raises most, or None if all are decided."""
    best, found = -1, None
    for pair, possible in state.zones.items():
        if len(possible) > 1:
            gain = min(_raise(state, pair, zone) for zone in possible)
            if gain > best:
                best, found = gain, pair
    return found


def _raise(state: _State, pair: Pair, zone: Zone) -> int:
    """How much the least bases grow if the pair stands in the zone."""
    x, y = pair
    return max(0, state.least[x] + zone[0] - state.least[y], state.least[y] - zone[1] - state.least[x])
