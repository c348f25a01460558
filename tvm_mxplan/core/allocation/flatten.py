"""Rigid groups taken apart, for formats and pictures that know single rectangles only.

Before   an item of rectangles that overlap (views, pieces of a concatenation, results in place)
After    items of one rectangle each that cover the same bytes at the same steps, none twice

    |   piece 2   |           |  c    |
    |------+------|           |-------|
           | whole|   ->          | b |      each with an offset of its own, valid where the group was
    | piece 1     |           |  a    |

The plan stays valid; that parts must move together is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .plan import Plan
from .problem import Item, Problem, Rectangle


def flatten(problem: Problem, plan: Plan) -> tuple[Problem, Plan]:
    """The problem without groups, and the plan that puts everything where it was."""
    items: list[Item] = []
    offsets: list[int] = []
    for item, base in zip(problem.items, plan.offsets, strict=True):
        parts = list(_parts(item))
        for number, part in enumerate(parts):
            name = item.name if len(parts) == 1 else f"{item.name}.{number}"
            single = Rectangle(part.birth, part.death, 0, part.nbytes)
            items.append(Item(name, (single,), 1, item.scope))
            offsets.append(base + part.offset)
    return Problem(tuple(items), problem.capacity), replace(plan, offsets=tuple(offsets))


def _parts(item: Item) -> Iterator[Rectangle]:
    """Rectangles that cover the item once, each as long as its bytes stay the same."""
    times = sorted({time for r in item.rectangles for time in (r.birth, r.death)})
    running: dict[tuple[int, int], int] = {}  # bytes -> birth
    for time in times:
        alive = [r for r in item.rectangles if r.birth <= time < r.death and r.nbytes > 0]
        now = set(_union(sorted((r.offset, r.end) for r in alive)))
        for span in [span for span in running if span not in now]:
            yield Rectangle(running.pop(span), time, span[0], span[1] - span[0])
        for span in sorted(now):
            running.setdefault(span, time)


def _union(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Maximal intervals that sorted ones cover."""
    low, high = -1, -1
    for begin, end in spans:
        if begin > high:
            if high > low:
                yield low, high
            low, high = begin, end
        high = max(high, end)
    if high > low:
        yield low, high
