"""Whole plans compared: interleaved, hopeless ones dropped, the best one found."""

from __future__ import annotations

import itertools

from tvm_mxplan.tuning.compare import FIRST_ROUNDS, ROUNDS, Comparison


class Plan:
    """A plan of known duration, with noise that only lengthens."""

    def __init__(self, log: list[str], name: str, value: float, noise: tuple[float, ...] = (0.0,)) -> None:
        self.log, self.name, self.value = log, name, value
        self.noise = itertools.cycle(noise)

    def __call__(self) -> float:
        self.log.append(self.name)
        return self.value + next(self.noise)


def test_the_best_is_found_in_noise():
    log: list[str] = []
    comparison = Comparison()
    comparison.join("a", Plan(log, "a", 100.0, (0.0, 30.0, 0.0, 50.0)))
    comparison.join("b", Plan(log, "b", 98.0, (40.0, 0.0, 0.0, 20.0)))
    comparison.settle(lambda: True)
    assert comparison.best == ("b", 98.0)
    assert comparison.repeats == {"a": ROUNDS + 2 * FIRST_ROUNDS, "b": ROUNDS + FIRST_ROUNDS}


def test_rounds_are_interleaved():
    log: list[str] = []
    comparison = Comparison()
    for name in "ab":
        comparison.join(name, Plan(log, name, 100.0))
    log.clear()
    comparison.settle(lambda: True)
    assert log == ["a", "b"] * ROUNDS


def test_hopeless_plans_leave_at_once_and_keep_their_value():
    log: list[str] = []
    comparison = Comparison()
    comparison.join("a", Plan(log, "a", 100.0))
    comparison.join("b", Plan(log, "b", 200.0))
    comparison.join("c", Plan(log, "c", 101.0))
    log.clear()
    comparison.settle(lambda: True)
    assert set(log) == {"a", "c"}
    assert comparison.values == {"a": 100.0, "b": 200.0, "c": 101.0}


def test_what_left_is_never_the_best():
    """A lucky first look drops others; it does not crown one of them afterwards."""
    log: list[str] = []
    comparison = Comparison()
    comparison.join("a", Plan(log, "a", 100.0))
    comparison.join("b", Plan(log, "b", 140.0))
    comparison._rounds(comparison._running, 1)
    comparison.values["b"] = 1.0
    assert comparison.best == ("a", 100.0)


def test_the_budget_ends_it():
    log: list[str] = []
    comparison = Comparison()
    for name in "ab":
        comparison.join(name, Plan(log, name, 100.0))
    log.clear()
    comparison.settle(iter([True, True, False]).__next__)
    assert log == ["a", "b"] * 2
