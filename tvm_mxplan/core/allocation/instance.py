"""The normal form that the solvers work on: one connected part of one arena over section numbers.

Three reductions, none of which changes the optimum:

1. Items that never meet, even through others, are separate instances.
2. The rectangles of an item become its outline: disjoint blocks, aliases melted into their parents.
3. Steps become sections.  Of all steps only those matter at which something dies right after
   something was born; every other step is alive with a subset of what such a step has::

       step       0   1   2   3   4   5            section   0   1
       a          |-------|                        a         |---|
       b              |-----------|                b         |-------|
       c                      |-------|            c             |---|

Items are sorted by what they are, so that neither their order nor their names matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .problem import Problem, Rectangle


class Block(NamedTuple):
    """Bytes ``[low, high)`` from the base of an item, in sections ``[first, last)``."""

    first: int
    last: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Shape:
    """An item without its name: its blocks and the alignment of its base."""

    blocks: tuple[Block, ...]
    alignment: int

    @property
    def extent(self) -> int:
        """Bytes from the base to the highest end."""
        return max(block.high for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Instance:
    """A connected part of one arena.

    Parameters
    ----------
    shapes : tuple of Shape
        Sorted.
    members : tuple of int
        For each shape the index of its item in the problem.
    sections : int
        Number of sections.
    """

    shapes: tuple[Shape, ...]
    members: tuple[int, ...]
    sections: int


def align_up(value: int, alignment: int) -> int:
    """Least multiple of ``alignment`` that is at least ``value``."""
    return -(-value // alignment) * alignment


def instances(problem: Problem, scope: str) -> list[Instance]:
    """The connected parts of one scope, sorted.

    Items without bytes appear in none of them; any base does for those.
    """
    outlines = {
        index: blocks
        for index, item in enumerate(problem.items)
        if item.scope == scope and (blocks := outline(item.rectangles))
    }
    found = [_normalise(members, outlines, problem) for members in _connected(outlines)]
    return sorted(found, key=lambda instance: [(s.blocks, s.alignment) for s in instance.shapes])


def outline(rectangles: Sequence[Rectangle]) -> tuple[Block, ...]:
    """Disjoint blocks that cover the same bytes at the same steps, over steps instead of sections."""
    alive = [r for r in rectangles if r.nbytes > 0]
    if len(alive) == 1:
        only = alive[0]
        return (Block(only.birth, only.death, only.offset, only.end),)
    steps = sorted({step for r in alive for step in (r.birth, r.death)})
    open_blocks: dict[tuple[int, int], int] = {}
    done = []
    for step in steps:
        here = set(merged((r.offset, r.end) for r in alive if r.birth <= step < r.death))
        for span in [span for span in open_blocks if span not in here]:
            done.append(Block(open_blocks.pop(span), step, *span))
        for span in here:
            open_blocks.setdefault(span, step)
    return tuple(sorted(done))


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Half-open intervals joined where they touch or overlap, sorted."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined


def _connected(outlines: dict[int, tuple[Block, ...]]) -> list[list[int]]:
    """Groups of items that meet in time, directly or through others of the group."""
    parent = {index: index for index in outlines}

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    lives = sorted((b.first, b.last, index) for index, blocks in outlines.items() for b in blocks)
    until, latest = -1, -1
    for first, last, index in lives:
        if first < until:
            parent[root(index)] = root(latest)
        if last > until:
            until, latest = last, index
    groups: dict[int, list[int]] = {}
    for index in outlines:
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _normalise(members: list[int], outlines: dict[int, tuple[Block, ...]], problem: Problem) -> Instance:
    deaths = {block.last for index in members for block in outlines[index]}
    births = {block.first for index in members for block in outlines[index]}
    section: dict[int, int] = {}
    count, grown = 0, False
    for step in sorted(births | deaths):
        if step in deaths and grown:
            count, grown = count + 1, False
        section[step] = count
        grown = step in births
    shapes = {}
    for index in members:
        blocks = (Block(section[b.first], section[b.last], b.low, b.high) for b in outlines[index])
        shapes[index] = Shape(tuple(blocks), problem.items[index].alignment)
    order = sorted(members, key=lambda index: (shapes[index].blocks, shapes[index].alignment))
    ordered = tuple(shapes[index] for index in order)
    return Instance(ordered, tuple(order), count)
