"""scripts/bench layouts: a row for each model, a ratio for each policy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.whole import layouts


def test_policies_that_are_named_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--models", "tiny", "--batch", "1", "--rounds", "2", "--policies", "blocked,naive"]
    assert layouts.main(wanted) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.endswith("| cost ms | blocked | naive | reorders: cost, blocked, naive |")
    cells = row.strip("| ").split(" | ")
    assert cells[:2] == ["tiny", "1"] and all(float(cell) > 0 for cell in cells[2:5])
    shares = [int(share.removesuffix(" %")) for share in cells[5].split(", ")]
    assert len(shares) == 3 and all(0 <= share <= 100 for share in shares)


def test_naive_reorders_around_every_convolution() -> None:
    kinds = {
        policy: [one.step.kind for one in layouts.timed_steps("tiny", 1, policy)]
        for policy in ("cost", "naive")
    }
    assert kinds["cost"].count("convolution") == kinds["naive"].count("convolution") > 0
    assert kinds["cost"].count("reorder") < kinds["naive"].count("reorder")


def test_unknown_policies_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        layouts.main(["--policies", "fast"])
    assert "no policy 'fast'; there are cost, any" in capsys.readouterr().err
