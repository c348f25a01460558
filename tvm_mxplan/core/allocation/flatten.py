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

from dataclasses import replace

from .instance import outline
from .plan import Plan
from .problem import Item, Problem, Rectangle


def flatten(problem: Problem, plan: Plan) -> tuple[Problem, Plan]:
    """The problem without groups, and the plan that puts everything where it was."""
    items: list[Item] = []
    offsets: list[int] = []
    for item, base in zip(problem.items, plan.offsets, strict=True):
        blocks = outline(item.rectangles)
        for number, block in enumerate(blocks):
            name = item.name if len(blocks) == 1 else f"{item.name}.{number}"
            single = Rectangle(block.first, block.last, 0, block.high - block.low)
            items.append(Item(name, (single,), 1, item.scope))
            offsets.append(base + block.low)
    return Problem(tuple(items), problem.capacity), replace(plan, offsets=tuple(offsets))
