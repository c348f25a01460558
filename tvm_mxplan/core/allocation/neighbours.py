"""How two items of an instance can stand relative to each other.

For items x and y alive together, the base of y less the base of x lies in one of a few zones.  Two
plain rectangles have two: y below x, and y above x.  Rigid groups can interlock, which adds zones
between.  The search needs two numbers of each pair:

- ``above``: from here on y is above x in every section;
- ``touch``: the least at which y can stand on x in any zone; less than ``above`` if they interlock.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from .bounds import grain_of
from .instance import Instance, Shape, align_up

FAR = 2**62


class Neighbour(NamedTuple):
    """Another item that is alive together with this one.

    ``above`` and ``touch`` say how far the other one is above this one; ``touched`` how far this one
    is above the other one where it stands on it lowest.
    """

    item: int
    above: int
    touch: int
    touched: int


class Piece(NamedTuple):
    """A block as one section sees it; ``spare`` are the bytes of ``size`` that rounding added."""

    item: int
    low: int
    size: int
    spare: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Geometry of an instance, made once and read by every search.

    Parameters
    ----------
    around : tuple of tuple of Neighbour
        For each item those that are alive together with it.
    pieces : tuple of tuple of Piece
        For each section the blocks alive in it.
    loads : tuple of dict
        For each item the sections of its blocks, and its bytes there.
    levels : tuple of int
        For each item the begin of its topmost block, relative to its base.
    hulls : tuple of tuple of int
        For each item its first section and the one after its last.
    blocks, alive : tuple of int
        Sets of blocks as bits: those of each item, and those alive in each section.
    touched : tuple of dict
        For each item ``Neighbour.touched`` by the other item.
    """

    around: tuple[tuple[Neighbour, ...], ...]
    pieces: tuple[tuple[Piece, ...], ...]
    loads: tuple[dict[int, int], ...]
    levels: tuple[int, ...]
    hulls: tuple[tuple[int, int], ...]
    blocks: tuple[int, ...]
    alive: tuple[int, ...]
    touched: tuple[dict[int, int], ...]


def zones(lower: Shape, upper: Shape) -> list[tuple[int, int]]:
    """Closed intervals in which the base of ``upper`` less the base of ``lower`` may lie."""
    forbidden = sorted(
        (a.low - b.high, a.high - b.low)
        for a in lower.blocks
        for b in upper.blocks
        if a.first < b.last and b.first < a.last
    )
    found, begin = [], -FAR
    for low, high in forbidden:
        if low >= begin:
            found.append((begin, low))
        begin = max(begin, high)
    return [*found, (begin, FAR)]


def step_of(instance: Instance) -> int:
    """A number of which the height of every plan with nothing to push down is a multiple."""
    step = 0
    for shape in instance.shapes:
        step = gcd(step, *(number for block in shape.blocks for number in (block.low, block.high)))
    return gcd(step, *(shape.alignment for shape in instance.shapes if step % shape.alignment))


def neighbours(instance: Instance) -> Neighbours:
    """Work out the geometry; quadratic in the items alive together."""
    shapes, grain = instance.shapes, grain_of(instance)
    pieces: list[list[Piece]] = [[] for _ in range(instance.sections)]
    met: list[set[int]] = [set() for _ in shapes]
    alive_blocks = [0] * instance.sections
    loads: list[dict[int, int]] = [{} for _ in shapes]
    blocks, bit = [0] * len(shapes), 1
    for index, shape in enumerate(shapes):
        for block in shape.blocks:
            blocks[index] |= bit
            size = align_up(block.high - block.low, grain)
            piece = Piece(index, block.low, size, size - (block.high - block.low))
            for s in range(block.first, block.last):
                pieces[s].append(piece)
                loads[index][s] = loads[index].get(s, 0) + size
                alive_blocks[s] |= bit
            bit <<= 1
    for alive in pieces:
        items = {piece.item for piece in alive}
        for item in items:
            met[item] |= items
    around: list[list[Neighbour]] = [[] for _ in shapes]
    for x, others in enumerate(met):
        for y in sorted(other for other in others if other > x):
            between = zones(shapes[x], shapes[y])
            above, touch = between[-1][0], between[1][0]
            under, touched = -between[0][1], -between[-2][1]
            around[x].append(Neighbour(y, above, touch, touched))
            around[y].append(Neighbour(x, under, touched, touch))
    return Neighbours(
        tuple(tuple(row) for row in around),
        tuple(tuple(row) for row in pieces),
        tuple(loads),
        tuple(max(block.low for block in shape.blocks) for shape in shapes),
        tuple((shape.first, shape.last) for shape in shapes),
        tuple(blocks),
        tuple(alive_blocks),
        tuple({other.item: other.touched for other in row} for row in around),
    )
