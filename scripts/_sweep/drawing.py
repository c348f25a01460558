"""Draws the cases to try: a random sample of all products, the same for the same seed, and cut into shards.

Case ``number`` of a seed is drawn from a generator of its own, so that shards and restarts need no state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .execution import Case
from .grammar import Line
from .steps import chains
from .steps.element_types import choose
from .steps.subjects import subject


class NothingToDraw(ValueError):
    """No problem of the lists that was tried has steps in the types that are wanted, and is small enough."""


MOST_WORK = 300_000_000
MOST_ELEMENTS = 12_000_000
_TRIES = 1000


def draw(
    lines: Sequence[Line], seed: int, number: int, families: Sequence[str] = ("f32",)
) -> tuple[Case, np.random.Generator]:
    """A case that makes sense and is not too large, and the generator for what else there is to choose.

    Parameters
    ----------
    families : of element types (``element_types.FAMILIES``), of which the case has one.

    Raises
    ------
    NothingToDraw : of problems that make sense, none that was tried has a type of the families.
    """
    random = np.random.default_rng([seed, number])
    for _ in range(_TRIES):
        line = lines[int(random.integers(len(lines)))]
        problem = line.at(int(random.integers(line.size)))
        made = subject(problem)
        if made is None or made.work > MOST_WORK or made.elements > MOST_ELEMENTS:
            continue
        family = families[int(random.integers(len(families)))] if len(families) > 1 else families[0]
        chosen = choose(problem, made, family, random)
        if chosen is None:
            continue
        made = subject(chosen)
        assert made is not None
        chain = tuple(link for link in chains.draw(made, random) if made.is_float or link.name != "sum")
        return Case(chosen, chain, int(random.integers(2**31))), random
    kinds = ", ".join(sorted({line.kind for line in lines}))
    raise NothingToDraw(
        f"none of {_TRIES} problems of {kinds} makes sense in {', '.join(families)}, and is small enough"
    )
