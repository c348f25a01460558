"""The table of depthwise convolutions inside of the pointwise ones before them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.windows import pairs

from tvm_mxplan.byoc.onednn.rewrites import depthwise


def test_each_block_runs_as_one_step_and_as_two(capsys: pytest.CaptureFixture[str]) -> None:
    rule = dict(depthwise.LEAST_TIMES)
    assert pairs.main(["--blocks", "1x8x32x16:2,2x8x16x8:1", "--rounds", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["1x8x32x16:2", "2x8x16x8:1"]
    assert all(re.fullmatch(r"\| \S+( \| \d+\.\d+){5} \|", row) for row in rows), rows
    assert rule == depthwise.LEAST_TIMES
