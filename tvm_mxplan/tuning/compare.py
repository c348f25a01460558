"""Timing whole plans against each other: interleaved, and the slow ones dropped on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .values import typical_sample

FIRST_ROUNDS = 3
ROUNDS = 30
HOPELESS = 1.3
CLOSE = 1.1


@dataclass
class Runner:
    """A plan that is built, with its samples."""

    name: str
    sample: Callable[[], float]
    samples: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        return typical_sample(self.samples)


class Comparison:
    """Plans join one by one; those far behind the best leave, and their memory with them.

    Attributes
    ----------
    values : what became of each plan so far, by name; also of those that left.
    """

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.repeats: dict[str, int] = {}
        self._running: list[Runner] = []

    @property
    def best(self) -> tuple[str, float]:
        """Name and value of the best plan that has not left: what left early rests on few samples."""
        names = [runner.name for runner in self._running] or list(self.values)
        name = min(names, key=lambda n: self.values[n])
        return name, self.values[name]

    def join(self, name: str, sample: Callable[[], float]) -> None:
        """A first look at a plan, beside the best one so far."""
        new = Runner(name, sample)
        new.sample()
        beside = [runner for runner in self._running if runner.name == self.best[0]]
        self._running.append(new)
        self._rounds([*beside, new], FIRST_ROUNDS)
        self._drop(HOPELESS)

    def settle(self, goes_on: Callable[[], bool]) -> None:
        """Rounds of all that are left, while ``goes_on``; only those close to the best take part for long."""
        for number in range(ROUNDS):
            if len(self._running) < 2 or not goes_on():
                return
            self._rounds(self._running, 1)
            if number in (3, 8):
                self._drop(CLOSE)

    def _rounds(self, runners: list[Runner], count: int) -> None:
        for _ in range(count):
            for runner in runners:
                runner.samples.append(runner.sample())
        for runner in runners:
            self.values[runner.name] = runner.value
            self.repeats[runner.name] = len(runner.samples)

    def _drop(self, factor: float) -> None:
        limit = factor * self.best[1]
        self._running = [runner for runner in self._running if runner.value <= limit]


def instance(module: Any, arguments: list[Any]) -> Callable[[], object]:
    """A virtual machine over what ``relax.build`` made, as a call without arguments."""
    import tvm
    from tvm.runtime.vm import VirtualMachine

    main = VirtualMachine(getattr(module, "mod", module), tvm.cpu())["main"]
    return lambda: main(*arguments)
