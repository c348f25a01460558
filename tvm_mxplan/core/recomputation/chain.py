"""The cheapest choice for a chain: forward operations of which each reads the result of the one before it.

    v0 -> v1 -> v2 -> ... -> v(n-1)        kept: v0, v3, v5      segments: (v1, v2), (v4), (v6, ...)

What is kept cuts the chain into segments.  When backward comes to a segment, all of it that is needed is made
again from the kept value in front of it.  If backward comes to values one after the other, from the last to
the first, then all kept values further in front are alive in that time, and those further behind are dead:
the bytes of a segment's time are those of the kept values in front, together, and a number of its own.  So
the best choice is a path over kept values, with (bytes kept so far, cost) as labels of which those that
another one beats in both are left out.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from .problem import Problem

_MOST_LABELS = 100_000
_MOST_VALUES = 200


class NotAChain(ValueError):
    """Raised for a problem that is no chain, or too large for an exact answer."""


@dataclass(frozen=True)
class _Chain:
    """The chain's values in order, and when the backward part reads them.

    Attributes
    ----------
    sizes, us : by place in the chain.
    begins, ends : first and last backward operation that reads a value; -1 where none does.
    base : bytes of all other values in each operation.
    between : the same between it and the one before.
    """

    sizes: tuple[int, ...]
    us: tuple[float, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    base: tuple[int, ...]
    between: tuple[int, ...]

    def needed(self, place: int) -> bool:
        return 0 <= place < len(self.sizes) and self.begins[place] >= 0


@dataclass(frozen=True)
class _Label:
    """Kept values up to a place.

    Attributes
    ----------
    nbytes : of those in front of the place.
    before : the label of the last of them.
    place : which is that.
    """

    nbytes: int
    us: float
    before: _Label | None
    place: int


def cheapest_on_chain(problem: Problem, budget: int) -> frozenset[int] | None:
    """The values to drop at the least cost; None where no choice fits.

    Raises
    ------
    NotAChain : the problem is none, or too large for an exact answer.
    """
    chain = _chain_of(problem)
    if max(chain.base, default=0) > budget:
        return None
    count, made = len(chain.sizes), 0
    labels: list[list[_Label]] = [[] for _ in range(count + 1)]
    for begin in range(-1, count):
        mine = _undominated(labels[begin]) if begin >= 0 else [_Label(0, 0.0, None, -1)]
        for end in range(begin + 1, count + 1) if mine else ():
            own, us, held = _segment(chain, begin, end)
            for label in mine:
                if label.nbytes + own > budget:
                    break
                labels[end].append(_Label(label.nbytes + held, label.us + us, label, begin))
                made += 1
        if made > _MOST_LABELS:
            raise NotAChain("more choices than can be compared")
    if not labels[count]:
        return None
    best: _Label | None = min(labels[count], key=lambda label: (label.us, label.nbytes))
    kept = set()
    while best is not None:
        kept.add(best.place)
        best = best.before
    return frozenset(place for place in range(count) if place not in kept)


def _undominated(labels: list[_Label]) -> list[_Label]:
    """Those that no other has fewer bytes and a smaller cost than, by their bytes."""
    found: list[_Label] = []
    for label in sorted(labels, key=lambda label: (label.nbytes, label.us)):
        if not found or label.us < found[-1].us:
            found.append(label)
    return found


def _segment(chain: _Chain, begin: int, end: int) -> tuple[int, float, int]:
    """Of the values between two kept ones: most bytes in their time, cost, and bytes that ``begin`` keeps.

    The bytes are those of the chain behind the kept values in front of ``begin``, and of all other values.
    """
    sizes, needed = chain.sizes, [place for place in range(begin + 1, end) if chain.needed(place)]
    kept = sizes[begin] if begin >= 0 else 0
    used = bool(needed) or chain.needed(begin)
    most = 0
    for place in range(begin + 1, min(end + 1, len(sizes))):
        load = sizes[place] + (kept if used or place == begin + 1 else 0) + chain.base[place]
        most = max(most, load + (sizes[place - 1] if place - 1 > begin else 0))
    us = 0.0
    first = -1
    if needed:
        first, inside = chain.begins[needed[-1]], 0
        for place in range(begin + 1, needed[-1] + 1):
            before = sizes[place - 1] if place - 1 > begin and not chain.needed(place - 1) else 0
            most = max(most, chain.between[first] + kept + inside + before + sizes[place])
            inside += sizes[place] if chain.needed(place) else 0
            us += chain.us[place]
    behind = next((place for place in range(end, len(sizes)) if chain.needed(place)), None)
    start = len(sizes) if behind is None else chain.ends[behind] + 1
    stop = max([chain.ends[place] for place in needed] + [chain.ends[begin] if begin >= 0 else -1])
    for at in range(start, stop + 1):
        load = chain.base[at] + sum(sizes[place] for place in needed if first <= at <= chain.ends[place])
        alive = at <= chain.ends[begin] if chain.needed(begin) else at < first
        most = max(most, load + (kept if alive else 0))
    return most, us, kept if used else 0


def _chain_of(problem: Problem) -> _Chain:
    """The chain that a problem is; its values are numbered as their operations are."""
    count = problem.backward
    if count > _MOST_VALUES:
        raise NotAChain(f"{count} forward operations")
    for at in range(count):
        if problem.written[at] != (at,) or problem.operations[at].reads != ((at - 1,) if at else ()):
            raise NotAChain(f"operation {at} does not read the result of the one before alone")
        if problem.operations[at].scratch:
            raise NotAChain(f"operation {at} needs scratch")
    reads = [[at for at in readers if at >= count] for readers in problem.readers[:count]]
    begins = tuple(found[0] if found else -1 for found in reads)
    ends = tuple(found[-1] if found else -1 for found in reads)
    needed = [place for place in range(count) if begins[place] >= 0]
    for earlier, later in itertools.pairwise(needed):
        if begins[earlier] <= ends[later]:
            raise NotAChain(f"backward reads value {earlier} before it is done with value {later}")
    base, between = [one.scratch for one in problem.operations], [0] * len(problem.operations)
    for value, readers in zip(problem.values[count:], problem.readers[count:], strict=True):
        last = readers[-1] if readers else value.writer
        for at in range(value.writer, last + 1):
            base[at] += value.nbytes
            between[at] += value.nbytes if at > value.writer else 0
    return _Chain(
        tuple(value.nbytes for value in problem.values[:count]),
        tuple(operation.us for operation in problem.operations[:count]),
        begins,
        ends,
        tuple(base),
        tuple(between),
    )
