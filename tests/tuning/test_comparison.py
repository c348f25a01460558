"""Whole plans compared: interleaved, hopeless ones dropped, the best one found."""

from __future__ import annotations

import itertools

import pytest

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
    assert comparison.repeats == ROUNDS + FIRST_ROUNDS


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
    for name, value in (("a", 100.0), ("b", 200.0), ("c", 101.0)):
        comparison.join(name, Plan(log, name, value))
    log.clear()
    comparison.settle(lambda: True)
    assert set(log) == {"a", "c"}
    assert comparison.values == pytest.approx({"a": 100.0, "b": 200.0, "c": 101.0})


def test_plans_a_little_behind_leave_after_some_rounds():
    log: list[str] = []
    comparison = Comparison()
    for name, value in (("a", 100.0), ("b", 120.0), ("c", 101.0)):
        comparison.join(name, Plan(log, name, value))
    log.clear()
    comparison.settle(lambda: True)
    assert 0 < log.count("b") < log.count("c") == ROUNDS
    assert comparison.values == pytest.approx({"a": 100.0, "b": 120.0, "c": 101.0})


def test_a_busy_machine_slows_down_all_alike():
    """The second plan is looked at while everything takes twice as long; it stays, and wins."""
    load = [1.0]
    comparison = Comparison()
    comparison.join("a", lambda: 100.0 * load[0])
    load[0] = 2.0
    comparison.join("b", lambda: 90.0 * load[0])
    comparison.join("c", lambda: 180.0 * load[0])
    assert comparison.values == pytest.approx({"a": 100.0, "b": 90.0, "c": 180.0})
    load[0] = 1.0
    comparison.settle(lambda: True)
    assert comparison.best == ("b", 90.0)
    assert comparison.values == pytest.approx({"a": 100.0, "b": 90.0, "c": 180.0})


def test_the_budget_ends_it():
    log: list[str] = []
    comparison = Comparison()
    for name in "ab":
        comparison.join(name, Plan(log, name, 100.0))
    log.clear()
    comparison.settle(iter([True, True, False]).__next__)
    assert log == ["a", "b"] * 2


def test_stated_values_need_no_run():
    comparison = Comparison()
    comparison.state("a", 7.0)
    comparison.state("b", 5.0)
    comparison.settle(lambda: True)
    assert (comparison.best, comparison.repeats) == (("b", 5.0), 1)
    assert comparison.values == {"a": 7.0, "b": 5.0}
