"""The table of batch norms by our sums and by oneDNN's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import batch_norms


def test_a_shape_has_a_row_whose_results_agreed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_norms, "SHAPES", ((32, 5),))
    assert batch_norms.main(["--batch", "2", "--rounds", "1"]) == 0
    (row,) = capsys.readouterr().out.splitlines()[2:]
    assert re.fullmatch(r"\| 2x32x5x5 \|( \d+ \| \d+ \| \d+\.\d\d \|){3}", row)


def test_equal_results_are_demanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_norms, "TOLERANCE", -1.0)
    monkeypatch.setattr(batch_norms, "SHAPES", ((16, 3),))
    with pytest.raises(SystemExit, match="results differ"):
        batch_norms.main(["--batch", "1", "--rounds", "1"])
