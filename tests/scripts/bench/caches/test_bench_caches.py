"""scripts/bench caches on a small model: the table, and that it saw the cache at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table for the model ``tiny``."""
    command = [ROOT / "scripts" / "bench", "caches", "--sections", section, "--models", "tiny"]
    command += ["--rounds", "1"]
    variables = {**os.environ, "PYTHON": sys.executable}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout
    lines = [line for line in out.splitlines() if line.startswith("| tiny")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.slow
def test_the_table_of_compilations():
    (cells,) = rows("compile")
    assert len(cells) == 8
    without, cold, warm = (float(cell) for cell in cells[1:4])
    assert min(without, cold) > warm > 0


@pytest.mark.slow
def test_primitives_that_are_made_again_cost_more():
    found = rows("primitives")
    assert [cells[:2] for cells in found] == [["tiny", "1"], ["tiny", "8"]]
    for cells in found:
        held, fetched, created, bare = (float(cell) for cell in cells[2:6])
        assert 0 < held < bare and min(fetched, created) > 0


@pytest.mark.slow
def test_first_answers_of_all_engines():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    (cells,) = rows("first")
    seconds = [float(cell) for cell in cells[1:9]]
    assert len(cells) == 11 and min(seconds) > 0
    cold, warm = seconds[:2]
    assert cold > warm
