"""scripts/bench top_one: what counts as agreement, and one network through it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))
from _bench.harness.files import Files
from _bench.whole import top_one

from tvm_mxplan.testing import zoo


def test_rows_agree_by_their_largest_number() -> None:
    exact = np.array([[1.0, 4.0, 2.0], [3.0, 2.9, -1.0], [0.0, 0.0, 5.0]])
    found = exact.copy()
    found[1] = [2.9, 3.0, -1.0]
    told = top_one.compared(exact, found)
    assert (told.images, told.agreeing) == (3, 2)
    assert told.margin == pytest.approx(0.1 / 3.0)
    assert told.error == pytest.approx(np.sqrt(0.02) / np.linalg.norm(exact))
    assert top_one.compared(exact, exact) == top_one.Agreement(3, 3, 0.0, 0.0)


def test_the_same_images_go_through_every_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, float]] = []

    def ours(_model: Path, precision: str) -> top_one.Answer:
        def answer(inputs: dict[str, np.ndarray]) -> np.ndarray:
            (image,) = inputs.values()
            asked.append((precision, float(image.sum())))
            return np.eye(4, dtype="float32")[: len(image)]

        return answer

    def written(name: str, batch: int, files: Files) -> object:
        assert (name, batch) == ("squeezenet", 2) and files.model.parent.is_dir()
        return zoo.load(name, batch)

    monkeypatch.setattr(top_one, "_ours", ours)
    monkeypatch.setattr(top_one, "write_model", written)
    told = top_one.agreements("squeezenet", 3, 2, ["ours_bf16"])
    assert told == {"ours_bf16": top_one.Agreement(4, 4, 0.0, 0.0)}
    assert [precision for precision, _ in asked] == ["f32", "bf16"] * 2
    assert asked[0][1] == asked[1][1] != asked[2][1] == asked[3][1]
