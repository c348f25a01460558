"""Curves over epochs as a picture: one panel for each quantity, one line for each run, in SVG.

draw("curves.svg", [CurvePanel("loss", {"trained": [2.3, 1.9, 1.2]}), CurvePanel("accuracy", {...})])
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..errors import InvalidInputError
from ..export.files import check_destination, whole_file
from .loop import Epoch

_WIDTH, _HEIGHT, _LEFT, _TOP = 360, 220, 54, 30
_COLOURS = ("#1b6ca8", "#c1440e", "#2e7d32", "#7b1fa2", "#8d6e00", "#455a64")


@dataclass(frozen=True)
class CurvePanel:
    """One quantity over epochs, which are counted from 1.

    Attributes
    ----------
    lines : numbers by what they are of; those that are no numbers leave a gap.
    """

    title: str
    lines: Mapping[str, Sequence[float]]


def panels_of(epochs: Sequence[Epoch]) -> list[CurvePanel]:
    """Loss, and accuracies where there are any, of a run."""
    found = [CurvePanel("loss", {"training": [epoch.loss for epoch in epochs]})]
    shares = {
        name: [math.nan if value is None else 100 * value for value in values]
        for name, values in (
            ("training", [epoch.accuracy for epoch in epochs]),
            ("validation", [epoch.validation for epoch in epochs]),
        )
    }
    known = {name: row for name, row in shares.items() if any(map(math.isfinite, row))}
    return [*found, CurvePanel("accuracy, %", known)] if known else found


def draw(path: str | os.PathLike[str], panels: Sequence[CurvePanel]) -> None:
    """Write the panels side by side; the file appears whole or not at all.

    Raises
    ------
    InvalidInputError : a path that does not end in .svg, or nothing to draw.
    """
    path = check_destination(path, ".svg")
    if not any(math.isfinite(value) for panel in panels for row in panel.lines.values() for value in row):
        raise InvalidInputError(f"{path}: no epoch to draw; expected one at least")
    wide = len(panels) * (_WIDTH + _LEFT + 20)
    body = "".join(_panel(panel, at * (_WIDTH + _LEFT + 20)) for at, panel in enumerate(panels))
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{_HEIGHT + 70}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f"{body}</svg>\n"
    )
    with whole_file(path) as partial:
        partial.write_text(text)


def _panel(panel: CurvePanel, left: int) -> str:
    values = [value for row in panel.lines.values() for value in row if math.isfinite(value)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    high = high if high > low else low + 1
    epochs = max((len(row) for row in panel.lines.values()), default=1)

    def place(epoch: int, value: float) -> tuple[float, float]:
        across = (epoch - 1) / max(1, epochs - 1)
        up = (value - low) / (high - low)
        return left + _LEFT + across * _WIDTH, _TOP + (1 - up) * _HEIGHT

    parts = [
        f'<text x="{left + _LEFT}" y="{_TOP - 12}" font-weight="bold">{escape(panel.title)}</text>',
        f'<rect x="{left + _LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" '
        'fill="none" stroke="#999"/>',
    ]
    for value in (low, (low + high) / 2, high):
        _, y = place(1, value)
        parts.append(f'<text x="{left + _LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for epoch in sorted({1, (1 + epochs) // 2, epochs}):
        x, _ = place(epoch, low)
        parts.append(f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{epoch}</text>')
    for at, (name, row) in enumerate(panel.lines.items()):
        colour, dashed = _COLOURS[at % len(_COLOURS)], ' stroke-dasharray="5 3"' if at % 2 else ""
        for run in _runs(row):
            points = " ".join("{:.1f},{:.1f}".format(*place(epoch, value)) for epoch, value in run)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dashed}/>'
            )
        y = _TOP + _HEIGHT + 32 + 12 * (at // 3)
        x = left + _LEFT + (at % 3) * _WIDTH // 3
        parts.append(f'<text x="{x}" y="{y}" fill="{colour}">{escape(name)}</text>')
    return "".join(parts)


def _runs(row: Sequence[float]) -> list[list[tuple[int, float]]]:
    """Epochs and numbers, apart where one is missing."""
    found: list[list[tuple[int, float]]] = [[]]
    for epoch, value in enumerate(row, 1):
        if math.isfinite(value):
            found[-1].append((epoch, value))
        elif found[-1]:
            found.append([])
    return [run for run in found if run]
