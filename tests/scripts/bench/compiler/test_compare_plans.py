"""Two plans of one network are the same, and a changed one is told with the place of the change."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
import pytest

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.compiler import compile_time, plans  # noqa: E402

from tvm_mxplan.testing import zoo  # noqa: E402


def test_a_network_has_one_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("before.json", "after.json")]
    for file in files:
        assert plans.main(["write", str(file), "--models", "tiny"]) == 0
    assert plans.main(["compare", *map(str, files)]) == 0
    changed = json.loads(files[1].read_text())
    (plan,) = changed.values()
    assert plan["programs"] and plan["report"]["regions"][0]["arena_bytes"] > 0
    plan["report"]["regions"][0]["arena_bytes"] += 64
    files[1].write_text(json.dumps(changed))
    capsys.readouterr()
    assert plans.main(["compare", *map(str, files)]) == 1
    assert "/tiny batch 1/report/regions/0/arena_bytes: " in capsys.readouterr().out


def test_a_summary_names_steps_that_one_plan_alone_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("before.json", "after.json")]
    model = tmp_path / "own.onnx"
    onnx.save(zoo.load("tiny"), model)
    assert plans.main(["write", str(files[0]), "--models", f"tiny,{model}"]) == 0
    made = json.loads(files[0].read_text())
    assert set(made) == {"tiny batch 1", "own batch 1"}
    region = made["own batch 1"]["report"]["regions"][0]
    region["estimated_us"] += 1.0
    files[1].write_text(json.dumps(made))
    capsys.readouterr()
    assert plans.main(["summary", *map(str, files)]) == 0
    assert "2 of 2 networks have the same steps and arenas." in capsys.readouterr().out
    region["steps"][0]["implementation"] = "other"
    region["arena_bytes"] += 64
    files[1].write_text(json.dumps(made))
    assert plans.main(["summary", *map(str, files)]) == 0
    table = capsys.readouterr().out
    (row,) = [line for line in table.splitlines() if line.startswith("| own batch 1 ")]
    kind = region["steps"][0]["kind"]
    assert f"1 {kind} other" in row and "1 of 2 networks" in table


def test_differences_are_found_at_any_depth() -> None:
    before = {"a": [1, {"b": 2}], "c": 3}
    assert list(plans.differences(before, {"a": [1, {"b": 2}], "c": 3})) == []
    assert list(plans.differences(before, {"a": [1, {"b": 4}], "d": 3})) == [
        "/a/1/b: 2 -> 4",
        '/c: 3 -> "absent"',
        '/d: "absent" -> 3',
    ]


def test_the_exponent_of_a_power_is_found() -> None:
    operators = [100, 500, 2000, 8000]
    assert compile_time.exponent(operators, [9.0, *(n**1.5 for n in operators[1:])]) == pytest.approx(1.5)
    assert compile_time.exponent(operators, [0.0] * 4) == 0.0
