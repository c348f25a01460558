"""A memory plan as a picture: time by address, in SVG; hovering over a rectangle tells what it is.

bytes
  |- - - - - - - - - - -  lower bound
  |   +-------+
  |   |  b    |-----+
  |---+---+---|  c  |
  |   a   |   |     |
  +-------+---+-----+---> step
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ..core.allocation import Item, Plan, Problem, Rectangle

_COLOURS = {
    "between": "#a48ac0",
    "arenas": "#c9b18b",
    "values": "#6b9bc3",
    "shared": "#7fb77e",
    "scratchpads": "#f2a65a",
}
_LEGEND = {
    "between": "tensor between kernels and regions",
    "arenas": "arena of a region",
    "values": "value",
    "shared": "value with views, in place or without a copy",
    "scratchpads": "scratchpad",
}
_WIDTH, _HEIGHT = 1200, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 20, 60, 50
_TICKS = 8


@dataclass(frozen=True)
class Panel:
    """The contents of one panel.

    Attributes
    ----------
    kinds : a kind of ``MemoryItem``, for each item.
    names : for each item the names of its rectangles.
    """

    title: str
    problem: Problem
    plan: Plan
    kinds: Sequence[str]
    names: Sequence[Sequence[str]]


def memory_picture(panels: Sequence[Panel]) -> str:
    """One SVG document, panels below one another."""
    height = _HEIGHT * max(len(panels), 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        lines.append(f'<g transform="translate(0 {number * _HEIGHT})">')
        lines += _Drawing(panel).lines()
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


class _Drawing:
    """One plan, and the scales that turn steps and bytes into places."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.plan = panel.plan
        self.steps = max((item.death for item in panel.problem.items), default=1)
        self.bytes = max(panel.plan.height, panel.plan.lower_bound, 1)

    def x(self, step: int) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * step / self.steps, 2)

    def y(self, address: int) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * address / self.bytes, 2)

    def lines(self) -> list[str]:
        panel, plan = self.panel, self.plan
        heading = f"{panel.title}: {plan.height:,} bytes, lower bound {plan.lower_bound:,}"
        lines = [f'<text x="{_LEFT}" y="20" font-size="15">{escape(heading)}</text>']
        lines += self._legend()
        lines += self._axes()
        for item, offset, kind, names in zip(
            panel.problem.items, plan.offsets, panel.kinds, panel.names, strict=True
        ):
            lines += self._item(item, offset, kind, names)
        return lines + self._bound()

    def _legend(self) -> list[str]:
        lines, x = [], _LEFT
        for kind, text in _LEGEND.items():
            lines.append(f'<rect x="{x}" y="32" width="12" height="12" fill="{_COLOURS[kind]}"/>')
            lines.append(f'<text x="{x + 17}" y="42">{escape(text)}</text>')
            x += 45 + 7 * len(text)
        return lines

    def _axes(self) -> list[str]:
        left, right, top, bottom = self.x(0), self.x(self.steps), self.y(self.bytes), self.y(0)
        lines = [f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="black"/>']
        for step in range(0, self.steps + 1, max(1, -(-self.steps // _TICKS))):
            lines.append(f'<text x="{self.x(step)}" y="{bottom + 18}" text-anchor="middle">{step}</text>')
        for tick in range(_TICKS + 1):
            address = self.bytes * tick // _TICKS
            y = self.y(address)
            lines.append(f'<path d="M{left - 4} {y}H{left}" stroke="black"/>')
            lines.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{address:,}</text>')
        middle = (left + right) / 2
        lines.append(f'<text x="{middle}" y="{bottom + 38}" text-anchor="middle">step</text>')
        lines.append(f'<text x="{left - 8}" y="{top - 14}" text-anchor="end">bytes</text>')
        return lines

    def _item(self, item: Item, base: int, kind: str, names: Sequence[str]) -> list[str]:
        shared = len(item.rectangles) > 1
        colour = _COLOURS["shared" if shared else kind]
        lines = []
        # The largest first, so that views lie on top and can be pointed at.
        order = sorted(range(len(item.rectangles)), key=lambda i: -_area(item.rectangles[i]))
        for number in order:
            part = item.rectangles[number]
            offset = base + part.offset
            life = f"steps {part.birth} to {part.death - 1}"
            text = f"{names[number]}\n{part.nbytes:,} bytes at {offset:,}\n{life}"
            x, y = self.x(part.birth), self.y(offset + part.nbytes)
            lines.append(
                f'<rect x="{x}" y="{y}" width="{round(self.x(part.death) - x, 2)}" '
                f'height="{round(self.y(offset) - y, 2)}" fill="{colour}" fill-opacity="0.75" '
                f'stroke="white" stroke-width="0.5"><title>{escape(text)}</title></rect>'
            )
        return lines

    def _bound(self) -> list[str]:
        y = self.y(self.plan.lower_bound)
        right = self.x(self.steps)
        return [
            f'<path d="M{self.x(0)} {y}H{right}" stroke="#c0392b" stroke-dasharray="6 4"/>',
            f'<text x="{right}" y="{y - 5}" text-anchor="end" fill="#c0392b">'
            f"lower bound {self.plan.lower_bound:,}</text>",
        ]


def _area(rectangle: Rectangle) -> int:
    return rectangle.nbytes * (rectangle.death - rectangle.birth)
