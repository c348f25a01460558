"""The memory benchmark: its table says what the plans say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench import memory  # noqa: E402


def test_a_row_for_each_kind_of_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main(["--models", "tiny", "--batch", "2"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if "tiny" in line]
    assert [row[:3] for row in rows] == [["tiny", "2", "relax"], ["tiny", "2", "regions"]]
    for row in rows:
        bound, ours, _, tvm, no_reuse = row[3:8]
        assert 0 < float(bound) <= float(ours) < float(no_reuse)
        assert tvm == "-" or float(ours) <= float(tvm)
