"""scripts/bench verify on small models: all kernels are checked once, and none of them again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm_mxplan

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "scripts"))

from _bench.inputs.encoder import encoder  # noqa: E402


@pytest.mark.slow
def test_the_table() -> None:
    command = [ROOT / "scripts" / "bench", "verify", "--models", "tiny"]
    variables = {**os.environ, "PYTHON": sys.executable}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout
    (row,) = [line for line in out.splitlines() if line.startswith("| tiny")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert int(cells[2]) > 3
    new, cpu, passes, known = (float(cell) for cell in cells[3:7])
    assert min(new, cpu, passes) > 0 and known < new


def test_the_encoder_is_one() -> None:
    """One layer of it: its products are offloaded, and it mixes tokens."""
    ex = tvm_mxplan.compile(encoder(layers=1))
    assert ex.report.offloaded == 1.0
    x = np.random.default_rng(0).standard_normal((1, 128, 768), np.float32)
    before = ex(x)[0].numpy()
    x[0, 5] += 1
    assert np.abs(ex(x)[0].numpy() - before)[0, 77].max() > 0
