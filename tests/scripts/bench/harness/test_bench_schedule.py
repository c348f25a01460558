"""Rounds of a benchmark in turns: which are run again, and which count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.harness import schedule
from _bench.harness.process import WorkerError
from _bench.harness.schedule import EngineResult, Options


class Played:
    """A worker whose calls take one more second in each burst."""

    def __init__(self, order: list[str], name: str, dies_at: int = 0) -> None:
        self.order, self.name, self.dies_at, self.bursts = order, name, dies_at, 0

    def ask(self, command: str, timeout: float, **of: Any) -> dict[str, Any]:
        self.order.append(self.name)
        self.bursts += 1
        if self.bursts == self.dies_at:
            raise WorkerError("died", "gone")
        return {"latencies": [float(self.bursts)], "processor_s": 10.0 * self.bursts}


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each round is, one after the other; none is when the list has ended."""
    states: list[bool] = []
    monkeypatch.setattr(
        schedule,
        "StolenTime",
        lambda: SimpleNamespace(disturbs=lambda: bool(states) and states.pop(0)),
    )
    monkeypatch.setattr(schedule, "time", SimpleNamespace(sleep=lambda seconds: None))
    yield states


def run(rounds: int, **dies_at: int) -> tuple[dict[str, EngineResult], list[str]]:
    order: list[str] = []
    workers = {name: Played(order, name, dies_at.get(name, 0)) for name in ("a", "b")}
    results = {name: EngineResult(name) for name in workers}
    schedule._run_rounds(workers, results, Options(rounds=rounds))  # type: ignore[arg-type]
    return results, order


def test_engines_take_turns_and_nobody_is_always_first(disturbed: list[bool]) -> None:
    results, order = run(2)
    assert order == ["a", "b", "a", "b", "b", "a"]  # a trial of each comes first
    assert results["a"].rounds == [[2.0], [3.0]] and results["b"].processor_s == [20.0, 30.0]


def test_a_disturbed_round_is_run_again_by_all(disturbed: list[bool]) -> None:
    disturbed[:] = [False, True, True, False, False]
    results, order = run(3)
    assert order == ["a", "b", *"ab", *"bababa", *"ab"]
    assert results["a"].rounds == [[2.0], [5.0], [6.0]] == results["b"].rounds


def test_the_fourth_try_counts_whatever_came(disturbed: list[bool]) -> None:
    disturbed[:] = [True] * 10
    results, order = run(1)
    assert len(order) == 2 + 4 * 2 and results["b"].rounds == [[5.0]]


def test_an_engine_that_dies_leaves_the_others(disturbed: list[bool]) -> None:
    disturbed[:] = [False, True]
    results, _ = run(3, a=3)
    assert (results["a"].status, results["b"].status) == ("died", "ok")
    assert len(results["a"].rounds) == 1 and len(results["b"].rounds) == 3
