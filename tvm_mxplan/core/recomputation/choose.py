"""``choose``: the operations of a forward part to run again, so that a run fits a budget of bytes."""

from __future__ import annotations

from dataclasses import dataclass

from .bound import least_us
from .chain import NotAChain, cheapest_on_chain
from .eviction import PREFERENCES, evicting, without_needless
from .problem import Problem, Run, simulated

_ROOMS = (1.0, 0.9, 0.8)
"""Shares of the budget to evict by: less room in the first place leaves more where a stretch runs again."""
_MOST_OPERATIONS = 20_000
"""Of all tries together, so that large steps are planned in seconds; each preference is tried once."""
_MOST_BETTERED = 6
"""So many of the cheapest runs are looked through for what is needless."""


@dataclass(frozen=True)
class Choice:
    """Operations that run again.

    Attributes
    ----------
    run : the operations with them, worked out from the start whoever chose.
    fits : whether the run keeps to the budget.
    least_us : microseconds that no choice within the budget can do without.
    exact : no choice within the budget costs less in which each operation runs again at most once, or none
        is within it.
    """

    run: Run
    fits: bool
    least_us: float
    exact: bool


def choose(problem: Problem, budget: int) -> Choice:
    """The cheapest of the choices that are tried; where nothing fits, the one of the fewest bytes."""
    whole = simulated(problem, frozenset())
    if whole.peak <= budget:
        return Choice(whole, True, 0.0, True)
    least = least_us(problem, budget)
    runs = [whole, *_evicting(problem, budget)]
    exact = least is None
    try:
        dropped = cheapest_on_chain(problem, budget)
        if dropped is not None:
            runs.append(simulated(problem, dropped))
            exact = True
    except NotAChain:
        pass
    best = min(runs, key=lambda run: (max(budget, run.peak), run.us, run.peak))
    return Choice(best, best.peak <= budget, least or 0.0, exact)


def _evicting(problem: Problem, budget: int) -> list[Run]:
    """Runs by eviction within the budget, or the smallest where none is, without what is needless in them."""
    tries = [(int(share * budget), one) for share in _ROOMS for one in PREFERENCES]
    most = max(len(PREFERENCES), _MOST_OPERATIONS // max(1, len(problem.operations)))
    runs = [evicting(problem, room, preference) for room, preference in tries[:most]]
    found = [run for run in runs if run is not None]
    fitting = sorted((run for run in found if run.peak <= budget), key=lambda run: (run.us, run.peak))
    smallest = sorted(found, key=lambda run: (run.peak, run.us))[:1]
    return [without_needless(problem, run, budget) for run in fitting[:_MOST_BETTERED] or smallest]
