"""``choose``: the values of a forward part to make again, so that a run fits a budget of bytes."""

from __future__ import annotations

from dataclasses import dataclass

from .chain import NotAChain, cheapest_on_chain
from .greedy import greedy, least_us
from .problem import Problem, Run, simulated


@dataclass(frozen=True)
class Choice:
    """Values that are made again.

    Attributes
    ----------
    run : the operations with them, worked out from the start whoever chose.
    fits : whether the run keeps to the budget.
    least_us : microseconds that no choice within the budget can do without.
    exact : no choice within the budget costs less, or none is within it.
    """

    dropped: frozenset[int]
    run: Run
    fits: bool
    least_us: float
    exact: bool


def choose(problem: Problem, budget: int) -> Choice:
    """The cheapest choice on chains, a good one with a bound elsewhere."""
    whole = simulated(problem, frozenset())
    if whole.peak <= budget:
        return Choice(frozenset(), whole, True, 0.0, True)
    least = least_us(problem, budget)
    try:
        dropped = cheapest_on_chain(problem, budget)
        exact = True
    except NotAChain:
        dropped, exact = None, False
    if dropped is None:
        found = greedy(problem, budget)
        run = simulated(problem, found)
        return Choice(found, run, run.peak <= budget, least or 0.0, exact or least is None)
    run = simulated(problem, dropped)
    return Choice(dropped, run, run.peak <= budget, run.us, True)
