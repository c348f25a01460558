"""Benchmarks of our own variants: tables with a row for each model, from what really ran."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")
sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.harness import variants
from _bench.whole import accuracy, choices


def _rows(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]


@pytest.mark.slow
def test_a_row_of_choices_has_a_ratio_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert choices.main(["--models", "tiny", "--batch", "1,2", "--rounds", "2"]) == 0
    header, _, *rows = _rows(capsys.readouterr().out)
    assert header == ["model", "batch", "chosen ms", *choices.RULES, "best rule"]
    assert [(row[0], row[1]) for row in rows] == [
        ("tiny", "1"),
        ("geometric mean of 1", "1"),
        ("tiny", "2"),
        ("geometric mean of 1", "2"),
    ]
    for row in rows:
        *ratios, best = (float(cell) for cell in row[3:])
        assert best == min(ratios) > 0


@pytest.mark.slow
def test_every_variant_is_compiled_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    real = variants.tvm_mxplan.compile

    def compile_and_note(model, options):
        compiled.append(options)
        return real(model, options=options)

    monkeypatch.setattr(variants.tvm_mxplan, "compile", compile_and_note)
    times = variants.median_times("tiny", 1, {"default": {}, **choices.RULES}, rounds=1)
    assert compiled == [{}, *choices.RULES.values()]
    assert list(times) == ["default", *choices.RULES] and min(times.values()) > 0


def test_a_wrong_variant_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    real = variants.onnxruntime_outputs
    monkeypatch.setattr(variants, "onnxruntime_outputs", lambda *a: [2 * y for y in real(*a)])
    with pytest.raises(SystemExit, match=r"tiny as chosen is off by 5\.0e-01"):
        variants.median_times("tiny", 1, {"chosen": {}}, rounds=1)


@pytest.mark.slow
def test_errors_against_float64(capsys: pytest.CaptureFixture[str]) -> None:
    assert accuracy.main(["--models", "tiny", "--engines", "ours,onnxruntime", "--threads", "1"]) == 0
    _, _, row = _rows(capsys.readouterr().out)
    assert row[:2] == ["tiny", "1"]
    assert all(0 < float(cell) < 1e-5 for cell in row[2:])


@pytest.mark.slow
def test_an_error_beyond_the_limit_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "LIMIT", 1e-12)
    assert accuracy.main(["--models", "tiny", "--engines", "ours", "--threads", "1"]) == 1
