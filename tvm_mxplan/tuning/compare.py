"""Timing whole plans against each other: interleaved, and the slow ones dropped on the way.

A busy machine slows down whatever runs at the time, so plans are held against each other by samples of the
same rounds alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..execution.machine import virtual_machine
from .values import typical_sample

FIRST_ROUNDS = 4
ROUNDS = 60
HOPELESS = 1.3
CLOSE = 1.1
_DROPS = (5, 10, 20)


@dataclass
class _Runner:
    """A plan that is built, with its samples; of two runners, the last ones are of the same rounds."""

    name: str
    sample: Callable[[], float]
    samples: list[float] = field(default_factory=list)

    def value(self, rounds: int) -> float:
        return typical_sample(self.samples[-rounds:])


class Comparison:
    """Plans join one by one; those far behind the best leave, and their memory with them."""

    def __init__(self) -> None:
        self._running: list[_Runner] = []
        self._best: _Runner | None = None
        self._rounds = 0  # of all that run, together
        self._stated: dict[str, float] = {}
        self._ratios: dict[str, tuple[str, float]] = {}

    @property
    def best(self) -> tuple[str, float]:
        """Name and value of the best plan."""
        values = self.values
        name = self._best.name if self._best else min(values, key=lambda n: values[n])
        return name, values[name]

    @property
    def values(self) -> dict[str, float]:
        """Values of all plans; of those that left, by how they did beside one that stayed."""
        return {name: self._value(name) for name in (*self._stated, *self._ratios)}

    @property
    def repeats(self) -> int:
        """The number of samples of the best plan."""
        return len(self._best.samples) if self._best else 1

    def state(self, name: str, value: float) -> None:
        """The value of a plan that is known without running it."""
        self._stated[name] = value

    def join(self, name: str, sample: Callable[[], float]) -> None:
        """A first look at a plan, beside the best one so far."""
        new, best = _Runner(name, sample), self._best
        new.sample()
        self._running.append(new)
        if best is None:
            self._take([new], FIRST_ROUNDS)
            self._best, self._stated[name] = new, new.value(FIRST_ROUNDS)
            return
        self._take([best, new], FIRST_ROUNDS)
        ratio = self._relate(new, best, FIRST_ROUNDS)
        if ratio < 1:
            self._best = new
        elif ratio > HOPELESS:
            self._running.remove(new)

    def settle(self, goes_on: Callable[[], bool]) -> None:
        """Rounds of all that are left, while ``goes_on``; only those close to the best take part for long."""
        while len(self._running) > 1 and self._rounds < ROUNDS and goes_on():
            self._take(self._running, 1)
            self._rounds += 1
            best = self._best = min(self._running, key=lambda runner: runner.value(self._rounds))
            for runner in self._running:
                if runner is not best:
                    self._relate(runner, best, self._rounds)
            self._ratios.pop(best.name, None)
            self._stated[best.name] = best.value(self._rounds)
            if self._rounds in _DROPS:
                kept = [r for r in self._running if r.value(self._rounds) <= CLOSE * self._stated[best.name]]
                self._running = kept

    def _take(self, runners: list[_Runner], rounds: int) -> None:
        for _ in range(rounds):
            for runner in runners:
                runner.samples.append(runner.sample())

    def _relate(self, runner: _Runner, best: _Runner, rounds: int) -> float:
        """Note how a plan does beside the best one."""
        ratio = runner.value(rounds) / best.value(rounds)
        self._stated.pop(runner.name, None)
        self._ratios[runner.name] = (best.name, ratio)
        return ratio

    def _value(self, name: str) -> float:
        if name in self._stated:
            return self._stated[name]
        beside, ratio = self._ratios[name]
        return ratio * self._value(beside)


def instance(module: Any, arguments: list[Any]) -> Callable[[], object]:
    """A virtual machine over what ``relax.build`` made, as a call without arguments."""
    main = virtual_machine(getattr(module, "mod", module))["main"]
    return lambda: main(*arguments)
