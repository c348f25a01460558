"""scripts/bench integers --steps: what each step of a quantised network takes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[4] / "scripts"))
from _bench.whole import integers


@pytest.mark.slow
def test_steps_have_kernels_and_times() -> None:
    options = argparse.Namespace(batch=1, threads=1, activations="u8", per_channel=False)
    title, _, *rows = integers.step_rows("squeezenet", options)
    assert title == "| squeezenet | kernel | us |"
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert sum(name.startswith("conv2d") for name, _, _ in cells) == 26
    placed = {name for name, kernel, _ in cells if not kernel}  # pieces that are written where they belong
    assert all(float(taken) > 0 for _, _, taken in cells)
    assert all(name.startswith("concat") for name in placed)
