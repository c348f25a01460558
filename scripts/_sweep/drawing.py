"""Draws the cases to try: a random sample of all products, the same for the same seed, and cut into shards.

Case ``number`` of a seed is drawn from a generator of its own, so that shards and restarts need no state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import chains
from .execution import Case
from .grammar import Line
from .subjects import subject

MOST_WORK = 300_000_000
MOST_ELEMENTS = 12_000_000
_TRIES = 100


def draw(lines: Sequence[Line], seed: int, number: int) -> tuple[Case, np.random.Generator]:
    """A case that makes sense and is not too large, and the generator for what else there is to choose."""
    random = np.random.default_rng([seed, number])
    for _ in range(_TRIES):
        line = lines[int(random.integers(len(lines)))]
        problem = line.at(int(random.integers(line.size)))
        made = subject(problem)
        if made and made.work <= MOST_WORK and made.elements <= MOST_ELEMENTS:
            return Case(problem, chains.draw(made, random), int(random.integers(2**31))), random
    raise ValueError(f"{line.place}: none of {_TRIES} problems makes sense and is small enough")
