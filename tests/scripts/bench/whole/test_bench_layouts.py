"""scripts/bench layouts: a row for each model, a ratio for each policy."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest

from tvm_mxplan.testing import zoo

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.inputs import modern, named
from _bench.whole import layouts


@pytest.mark.slow
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


def test_networks_of_today_go_by_their_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "levit.onnx"
    onnx.save(zoo.load(zoo.TINY), path)
    asked = []

    def model(_exports: modern.Exports, name: str, batch: int) -> Path:
        asked.append((name, batch))
        return path

    monkeypatch.setattr(modern.Exports, "model", model)
    found, inputs = named.network("levit_128s", 1)
    assert asked == [("levit_128s", 1)]
    assert found == onnx.load(path)
    assert [array.shape for array in inputs.values()] == [(1, 3, 224, 224)]
    published, _ = named.network(zoo.TINY, 2)
    assert published == zoo.load(zoo.TINY, batch=2) and len(asked) == 1
