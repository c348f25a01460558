"""scripts/bench_caches on a small model: the table, and that it saw the cache at work."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_compilations():
    command = [ROOT / "scripts" / "bench_caches", "--models", "tiny", "--rounds", "1"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (row,) = [line for line in out.splitlines() if line.startswith("| tiny")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 8
    without, cold, warm = (float(cell) for cell in cells[1:4])
    assert min(without, cold) > warm > 0
