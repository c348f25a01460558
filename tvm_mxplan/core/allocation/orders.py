"""Orders in which items are worth placing: big ones first, for several meanings of big."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .bounds import section_loads
from .instance import Instance, Shape

Order = tuple[int, ...]

# Each letter is one measure, the higher the earlier; further letters break ties.
# T total load around the item, A area, S size, W duration, C conflicts, B begin, E end.
RECIPES = ("TWA", "TAW", "WAT", "A", "S", "W", "SW", "WS", "AT", "C", "CS", "B", "E", "TS", "AC", "SC")


def orders(instance: Instance) -> list[Order]:
    """The different orders that the recipes give, each a permutation of the items."""
    measures = _measures(instance)
    found: dict[Order, None] = {}
    for recipe in RECIPES:
        keys = [tuple(-measures[letter][i] for letter in recipe) for i in range(len(instance.shapes))]
        found.setdefault(tuple(sorted(range(len(keys)), key=lambda i: (keys[i], i))))
    return list(found)


def _measures(instance: Instance) -> dict[str, list[int]]:
    shapes = instance.shapes
    loads = section_loads(instance)
    table = _Maximum(loads)
    births = np.sort(np.array([shape.first for shape in shapes]))
    deaths = np.sort(np.array([shape.last for shape in shapes]))

    def each(measure: Callable[[Shape], int]) -> list[int]:
        return [measure(shape) for shape in shapes]

    def conflicts(shape: Shape) -> int:
        """Items whose life meets this one's: born before its end, less dead before its birth."""
        return int(np.searchsorted(births, shape.last) - np.searchsorted(deaths, shape.first, side="right"))

    return {
        "T": each(lambda shape: max(table.over(block.first, block.last) for block in shape.blocks)),
        "A": each(lambda shape: sum((b.last - b.first) * (b.high - b.low) for b in shape.blocks)),
        "S": each(lambda shape: shape.extent),
        "W": each(lambda shape: shape.last - shape.first),
        "C": each(conflicts),
        "B": each(lambda shape: -shape.first),
        "E": each(lambda shape: shape.last),
    }


class _Maximum:
    """Maximum of any range of a list, from the maxima of all ranges whose length is a power of two."""

    def __init__(self, values: list[int]) -> None:
        self._levels = [np.array(values, dtype=np.int64)]
        half = 1
        while 2 * half <= len(values):
            below = self._levels[-1]
            self._levels.append(np.maximum(below[:-half], below[half:]))
            half *= 2

    def over(self, first: int, last: int) -> int:
        level = (last - first).bit_length() - 1
        row = self._levels[level]
        return max(int(row[first]), int(row[last - (1 << level)]))
