"""Orders in which items are worth placing: big ones first, for several meanings of big."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    return list(dict.fromkeys(_sorted(measures, recipe, None) for recipe in RECIPES))


def order_by(instance: Instance, recipe: str, blur: Sequence[float] | None = None) -> Order:
    """The order that a recipe gives; ``blur`` multiplies the first measure of each item."""
    return _sorted(_measures(instance), recipe, blur)


def _sorted(measures: dict[str, list[int]], recipe: str, blur: Sequence[float] | None) -> Order:
    columns: list[Sequence[float]] = [measures[letter] for letter in recipe]
    if blur is not None:
        columns[0] = [value * factor for value, factor in zip(columns[0], blur, strict=True)]
    rows = list(zip(*columns, strict=True))
    return tuple(sorted(range(len(rows)), key=lambda i: (*(-value for value in rows[i]), i)))


def conflicts(instance: Instance) -> int:
    """Pairs of items whose lives meet."""
    return sum(_meetings(instance)) // 2


def _meetings(instance: Instance) -> list[int]:
    """For each item the others whose lives meet its own: begun before its end, not over before it begins."""
    first = np.array([shape.first for shape in instance.shapes])
    last = np.array([shape.last for shape in instance.shapes])
    begun = np.searchsorted(np.sort(first), last)
    over = np.searchsorted(np.sort(last), first, side="right")
    meetings: list[int] = (begun - over - 1).tolist()
    return meetings


def _measures(instance: Instance) -> dict[str, list[int]]:
    shapes = instance.shapes
    loads = section_loads(instance)
    table = _Maximum(loads)
    def each(measure: Callable[[Shape], int]) -> list[int]:
        return [measure(shape) for shape in shapes]

    return {
        "T": each(lambda shape: max(table.over(block.first, block.last) for block in shape.blocks)),
        "A": each(lambda shape: sum((b.last - b.first) * (b.high - b.low) for b in shape.blocks)),
        "S": each(lambda shape: shape.extent),
        "W": each(lambda shape: shape.last - shape.first),
        "C": _meetings(instance),
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
