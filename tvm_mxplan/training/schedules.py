"""Learning rates by step; an optimiser takes any function of the number of the step, counted from 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .checks import float_of, int_of


@dataclass(frozen=True)
class StepDecay:
    """``rate``, multiplied by ``factor`` after every ``every`` steps."""

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        float_of("rate", self.rate, 0)
        float_of("factor", self.factor, 0)
        int_of("every", self.every, 1)

    def __call__(self, step: int) -> float:
        return self.rate * self.factor ** (step // self.every)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from ``rate`` to ``least`` over ``steps``, behind a line up over ``warmup`` steps."""

    rate: float
    steps: int
    least: float = 0.0
    warmup: int = 0

    def __post_init__(self) -> None:
        float_of("rate", self.rate, 0)
        float_of("least", self.least, 0)
        int_of("steps", self.steps, 1)
        int_of("warmup", self.warmup, 0)

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        share = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return self.least + (self.rate - self.least) * (1 + math.cos(math.pi * share)) / 2
