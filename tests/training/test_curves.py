"""Curves as SVG: what is drawn, where, and what is refused."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.training.curves import CurvePanel, draw, panels_of
from tvm_mxplan.training.loop import Epoch

SVG = "{http://www.w3.org/2000/svg}"


def lines(path: Path) -> list[list[tuple[float, float]]]:
    root = ElementTree.parse(path).getroot()
    rows = [line.attrib["points"].split() for line in root.iter(f"{SVG}polyline")]
    return [[tuple(map(float, point.split(","))) for point in row] for row in rows]  # type: ignore[misc]


def test_a_run_has_a_line_for_its_loss_and_each_accuracy(tmp_path: Path) -> None:
    epochs = [Epoch(1, 2.0, 0.25, None), Epoch(2, 1.0, 0.5, 0.4), Epoch(3, 1.5, 0.75, 0.6)]
    draw(tmp_path / "curves.svg", panels_of(epochs))
    loss, training, validation = lines(tmp_path / "curves.svg")
    assert len(loss) == len(training) == 3 and len(validation) == 2
    heights = [y for _, y in loss]
    assert heights[0] < heights[2] < heights[1]  # the highest number stands at the top
    assert validation[0][0] == training[1][0]  # epochs stand below one another


def test_names_are_escaped_and_gaps_part_lines(tmp_path: Path) -> None:
    draw(tmp_path / "curves.svg", [CurvePanel("a < b", {"one & two": [1.0, 2.0, math.nan, 3.0, 1.0]})])
    assert [len(line) for line in lines(tmp_path / "curves.svg")] == [2, 2]
    assert "one &amp; two" in (tmp_path / "curves.svg").read_text()


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no epoch to draw"):
        draw(tmp_path / "curves.svg", panels_of([]))
    with pytest.raises(InvalidInputError, match=r"expected .*\.svg|\.svg"):
        draw(tmp_path / "curves.png", [CurvePanel("loss", {"a": [1.0]})])
