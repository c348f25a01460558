"""From a traced Relax function and its lives to an allocation problem: what may share bytes.

An allocation is an item, its intervals are rectangles. Two allocations become one item
- where a call may write its result over an operand that dies there (`tir_in_place` proves it), and
- where they are the same result of the two branches of an `if`.

Regions that are open take part with their steps, and time is counted in those (region_calls).

Left to others: when allocations live (relax_liveness), offsets (core.allocation).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tvm_mxplan.core.allocation import Item, Problem, Rectangle
from tvm_mxplan.core.allocation.alignment import ALIGNMENT

from .region_calls import Region, Timeline, lends_arena
from .relax_aliases import Places, StorageStep, StorageTensor, Trace, name_of, union
from .relax_liveness import Lives

InPlacePairs = Callable[[StorageStep], Sequence[tuple[int, int]]]
"""Pairs of (argument that may be overwritten, argument that the result is written to) of a call."""


@dataclass(frozen=True)
class LendingCall:
    """A call that lends a region an arena.

    Attributes
    ----------
    time, step : the call.
    lent : the allocation that is the arena; where the region is open it takes no bytes.
    scope : where it stands, or the region's values.
    """

    time: int
    step: StorageStep
    region: Region
    lent: int
    scope: str


@dataclass(frozen=True)
class StorageProblem:
    """An allocation problem and what it stands for.

    Attributes
    ----------
    problem : the items, one for each group, then those of open regions.
    groups : for each of the first items its allocations, all at its base.
    in_place : by the variable of a call, the argument that its result overwrites and the result.
    opened : the calls of open regions, in the order in which their items follow.
    closed : the calls of other regions, whose arenas are among the allocations.
    """

    problem: Problem
    groups: tuple[tuple[int, ...], ...]
    in_place: dict[object, tuple[int, int]]
    opened: tuple[LendingCall, ...] = ()
    closed: tuple[LendingCall, ...] = ()


def storage_problem(
    trace: Trace,
    lives: Lives,
    arenas: dict[int, str],
    in_place_pairs: InPlacePairs,
    regions: Mapping[str, Region],
    opening: bool = True,
) -> StorageProblem:
    """The problem of the allocations that ``arenas`` names an arena for.

    With ``opening`` those of ``regions``, by the name they are called by, are opened that are called once.
    """
    groups = _Groups(trace.tensors, lives)
    in_place: dict[object, tuple[int, int]] = {}
    for a, b in lives.joined:
        if a in arenas and arenas.get(b) == arenas[a] and trace.tensors[a].excludes(trace.tensors[b]):
            groups.merge(a, b)
    for time, step in lives.steps:
        for source, destination in in_place_pairs(step):
            a, b = _exact(step, source), _exact(step, destination)
            if a not in arenas or arenas.get(b) != arenas[a] or a == b:
                continue
            if _may_overwrite(lives, time, step, source, destination) and groups.merge(a, b, time):
                in_place[step.var] = (source, destination)
                break
    calls = list(_region_calls(lives, arenas, regions))
    can_open = [opening and call.region.calls == 1 for call in calls]
    opened = tuple(itertools.compress(calls, can_open))
    closed = tuple(call for call, opens in zip(calls, can_open, strict=True) if not opens)
    lent = {call.lent for call in opened}
    members = [group for group in groups.members() if group[0] in arenas and group[0] not in lent]
    timeline = Timeline(
        lives.count,
        {call.time: (call.region, [union([arg]) for arg in call.step.args[:-1]]) for call in opened},
    )
    items = [_item(trace, lives, group, arenas[group[0]], timeline) for group in members]
    for call in opened:
        items += call.region.items(timeline.starts[call.time], call.scope)
    return StorageProblem(Problem(tuple(items)), tuple(members), in_place, opened, closed)


def _region_calls(
    lives: Lives, arenas: Mapping[int, str], regions: Mapping[str, Region]
) -> Iterator[LendingCall]:
    for time, step in lives.steps:
        region = regions.get(name_of(step.call))
        if region is not None and lends_arena(region, step.args):
            lent = _exact(step, len(step.args) - 1)
            if lent in arenas:
                yield LendingCall(time, step, region, lent, arenas[lent])


def _exact(step: StorageStep, argument: int) -> int:
    """The allocation that an argument is exactly, -1 if it is none or not known."""
    alias = step.args[argument]
    return min(alias.tensors) if isinstance(alias, Places) and alias.exact else -1


def _may_overwrite(lives: Lives, time: int, step: StorageStep, source: int, destination: int) -> bool:
    """True if nobody else sees the source die and the result be born."""
    a, b = _exact(step, source), _exact(step, destination)
    others = [arg for at, arg in enumerate(step.args) if at not in (source, destination)]
    born_here = lives.intervals[b][0][0] == time
    return a in lives.last[time] and born_here and not union(others) & {a, b}


class _Groups:
    """Allocations that stand at one base; merging keeps that sound."""

    def __init__(self, tensors: Sequence[StorageTensor], lives: Lives) -> None:
        self._tensors = tensors
        self._lives = lives
        self._group = {number: [number] for number in range(len(tensors))}

    def merge(self, a: int, b: int, time: int | None = None) -> bool:
        """Join the groups of ``a`` and ``b``, which may overlap at ``time``; False if others would clash."""
        left, right = self._group[a], self._group[b]
        if left is right:
            return False
        for x in left:
            for y in right:
                allowed = time if (x, y) == (a, b) else None
                if not self._tensors[x].excludes(self._tensors[y]) and self._overlap(x, y, allowed):
                    return False
        left.extend(right)
        for member in right:
            self._group[member] = left
        return True

    def _overlap(self, a: int, b: int, allowed: int | None) -> bool:
        for first, end in self._lives.intervals[a]:
            for other, other_end in self._lives.intervals[b]:
                low, high = max(first, other), min(end, other_end)
                if low < high and (low, high) != (allowed, (allowed or 0) + 1):
                    return True
        return False

    def members(self) -> Iterator[tuple[int, ...]]:
        by_first: dict[int, list[int]] = defaultdict(list)
        for number, group in self._group.items():
            by_first[min(group)].append(number)
        return (tuple(by_first[first]) for first in sorted(by_first))


def _item(trace: Trace, lives: Lives, group: Sequence[int], arena: str, timeline: Timeline) -> Item:
    rectangles = []
    for number in group:
        size = trace.tensors[number].size
        assert size is not None
        for at, interval in enumerate(lives.intervals[number]):
            steps = timeline.fine(number, interval, born=at == 0)
            rectangles.append(Rectangle(*steps, 0, size.nbytes))
    return Item(trace.tensors[group[0]].var.name, tuple(rectangles), ALIGNMENT, arena)
