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
from xml.sax.saxutils import escape

from .core.allocation import Item, Plan, Problem, Rectangle

_COLOURS = {"values": "#6b9bc3", "shared": "#7fb77e", "scratchpads": "#f2a65a"}
_LEGEND = {
    "values": "value",
    "shared": "value with views, in place or without a copy",
    "scratchpads": "scratchpad",
}
_WIDTH, _HEIGHT = 1200, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 20, 60, 50
_TICKS = 8


def memory_picture(plans: Sequence[tuple[str, Problem, Plan, Sequence[str]]]) -> str:
    """One SVG document with a panel for each plan.

    Parameters
    ----------
    plans : for each panel its title, the problem, the plan, and the kind (``values`` or ``scratchpads``)
        of each item.
    """
    height = _HEIGHT * max(len(plans), 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, (title, problem, plan, kinds) in enumerate(plans):
        lines.append(f'<g transform="translate(0 {number * _HEIGHT})">')
        lines += _Panel(problem, plan).lines(title, kinds)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


class _Panel:
    """One plan, and the scales that turn steps and bytes into places."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.steps = max((item.death for item in problem.items), default=1)
        self.bytes = max(plan.height, plan.lower_bound, 1)

    def x(self, step: int) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * step / self.steps, 2)

    def y(self, address: int) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * address / self.bytes, 2)

    def lines(self, title: str, kinds: Sequence[str]) -> list[str]:
        plan = self.plan
        heading = f"{title}: {plan.height:,} bytes, lower bound {plan.lower_bound:,}"
        lines = [f'<text x="{_LEFT}" y="20" font-size="15">{escape(heading)}</text>']
        lines += self._legend()
        lines += self._axes()
        for item, offset, kind in zip(self.problem.items, plan.offsets, kinds, strict=True):
            lines += self._item(item, offset, kind)
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

    def _item(self, item: Item, base: int, kind: str) -> list[str]:
        shared = len(item.rectangles) > 1
        colour = _COLOURS["shared" if shared else kind]
        lines = []
        # The largest first, so that views lie on top and can be pointed at.
        order = sorted(range(len(item.rectangles)), key=lambda i: -_area(item.rectangles[i]))
        for number in order:
            part = item.rectangles[number]
            offset = base + part.offset
            name = f"{item.name} (part {number + 1} of {len(item.rectangles)})" if shared else item.name
            text = f"{name}\n{part.nbytes:,} bytes at {offset:,}\nsteps {part.birth} to {part.death - 1}"
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
