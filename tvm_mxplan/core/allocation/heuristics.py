"""Quick plans: every order of the items times three ways to place the next one.

- first-fit: into the lowest gap that takes the item;
- best-fit: into the gap that leaves the fewest bytes over it, on top of all if there is none;
- skyline: nothing goes below what is placed; of all items the one that can stand lowest is next, and
  the order breaks ties.

All are linear in memory and make one pass of vector operations for each item.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .instance import Instance, Shape

Bases = list[int]
Vector = npt.NDArray[np.int64]
_FAR = 2**62


def height_of(instance: Instance, bases: Sequence[int]) -> int:
    """Bytes that the items reach up to."""
    return max(base + shape.extent for base, shape in zip(bases, instance.shapes, strict=True))


class _Placed:
    """Blocks that have their place, sorted by address."""

    def __init__(self, capacity: int) -> None:
        self._count = 0
        self._rows: Vector = np.zeros((4, capacity), dtype=np.int64)

    def add(self, shape: Shape, base: int) -> None:
        for block in shape.blocks:
            rows, count = self._rows, self._count
            at = int(np.searchsorted(rows[0, :count], base + block.low))
            rows[:, at + 1 : count + 1] = rows[:, at:count].copy()
            rows[:, at] = (base + block.low, base + block.high, block.first, block.last)
            self._count += 1

    def forbidden(self, shape: Shape) -> tuple[Vector, Vector]:
        """Open intervals where the base of ``shape`` cannot be, sorted by their begin."""
        low, high, first, last = self._rows[:, : self._count]
        begins, ends = [], []
        for block in shape.blocks:
            hit = (first < block.last) & (last > block.first)
            begins.append(low[hit] - block.high)
            ends.append(high[hit] - block.low)
        if len(begins) == 1:
            return begins[0], ends[0]
        begin, end = np.concatenate(begins), np.concatenate(ends)
        order = np.argsort(begin, kind="stable")
        return begin[order], end[order]

    def gaps(self, shape: Shape) -> tuple[Vector, Vector]:
        """Bases where ``shape`` can stand lowest in each gap, and the bytes left over it there."""
        begin, end = self.forbidden(shape)
        floor = np.zeros(len(begin) + 1, dtype=np.int64)
        np.maximum.accumulate(end, out=floor[1:])
        np.maximum(floor, 0, out=floor)
        if shape.alignment > 1:
            floor += -floor % shape.alignment
        room = np.append(begin, _FAR) - floor
        fits = room >= 0
        return floor[fits], room[fits]


def first_fit(instance: Instance, order: Sequence[int]) -> Bases:
    """Each item into the lowest gap that takes it."""
    return _fit(instance, order, best=False)


def best_fit(instance: Instance, order: Sequence[int]) -> Bases:
    """Each item into the tightest gap that takes it, on top of all if there is none."""
    return _fit(instance, order, best=True)


def _fit(instance: Instance, order: Sequence[int], *, best: bool) -> Bases:
    shapes = instance.shapes
    placed = _Placed(sum(len(shape.blocks) for shape in shapes))
    bases = [0] * len(shapes)
    for index in order:
        floor, room = placed.gaps(shapes[index])
        bases[index] = int(floor[np.argmin(room) if best else 0])
        placed.add(shapes[index], bases[index])
    return bases


def skyline(instance: Instance, order: Sequence[int]) -> Bases:
    """Of all items the one that can stand lowest, on top of what is placed; the order breaks ties."""
    shapes = [instance.shapes[index] for index in order]
    blocks = [block for shape in shapes for block in shape.blocks]
    heads = np.cumsum([0] + [len(shape.blocks) for shape in shapes])
    first, last, low, _ = np.array(blocks, dtype=np.int64).T
    alignment = np.array([shape.alignment for shape in shapes], dtype=np.int64)
    need = np.zeros(len(blocks), dtype=np.int64)
    base = np.zeros(len(shapes), dtype=np.int64)
    single, aligned = len(blocks) == len(shapes), bool((alignment > 1).any())
    open_items = np.ones(len(shapes), dtype=bool)
    bases = [0] * len(shapes)
    for _step in range(len(shapes)):
        at = int(np.argmin(np.where(open_items, base, _FAR)))
        here, shape = int(base[at]), shapes[at]
        bases[order[at]] = here
        open_items[at] = False
        for block in shape.blocks:
            hit = (first < block.last) & (last > block.first)
            need[hit] = np.maximum(need[hit], here + block.high - low[hit])
        base = need if single else np.maximum.reduceat(need, heads[:-1])
        if aligned:
            base = base + -base % alignment
    return bases


def settle(instance: Instance, bases: Sequence[int]) -> Bases:
    """Lets every item, from the lowest to the highest, fall into the lowest gap it can reach."""
    return first_fit(instance, sorted(range(len(bases)), key=lambda i: (bases[i], i)))


