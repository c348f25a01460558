"""Two plans of one network are the same, and a changed one is told with the place of the change."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.compiler import compile_time, plans  # noqa: E402


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
