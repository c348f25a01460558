"""Calls that take turns."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.harness.one_step import medians_in_turns


class Clock:
    """Seconds that go by where a call says so, and the order of the calls."""

    def __init__(self) -> None:
        self.now, self.called = 0.0, ""

    def call(self, name: str, seconds: float) -> None:
        self.now += seconds * (2.0 if not self.called.endswith(name) else 1.0)
        self.called += name


def test_every_other_round_goes_backwards_and_the_next_begins_elsewhere() -> None:
    clock = Clock()
    calls = [partial(clock.call, name, seconds) for name, seconds in (("a", 1e-6), ("b", 2e-6), ("c", 3e-6))]
    medians_in_turns(calls, 4, lambda: clock.now)
    assert clock.called == "abc" + "cba" + "bca" + "acb"


def test_calls_in_front_are_not_timed() -> None:
    clock = Clock()
    calls = [partial(clock.call, "a", 1e-6), partial(clock.call, "b", 2e-6)]
    times = medians_in_turns(calls, 3, lambda: clock.now, each=4, untimed=1)
    assert [round(one, 6) for one in times] == [1.0, 2.0]
    assert clock.called == "aaaaabbbbb" + "bbbbbaaaaa" * 2
    clock = Clock()
    calls = [partial(clock.call, "a", 1e-6), partial(clock.call, "b", 2e-6)]
    assert [round(one, 6) for one in medians_in_turns(calls, 2, lambda: clock.now, each=4)] == [1.25, 2.25]
