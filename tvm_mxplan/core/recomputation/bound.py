"""``least_us``: microseconds that no choice within a budget can do without.

In each operation, enough bytes must have been dropped of the values that only wait in it.  If they could be
dropped by parts, the cheapest for each byte first, that would cost no more than any choice does, however
often its operations run again; the most of these costs counts.
"""

from __future__ import annotations

from collections import defaultdict

from .problem import Problem, simulated


def least_us(problem: Problem, budget: int) -> float | None:
    """Microseconds that no choice within the budget can do without; None where none is within it."""
    run = simulated(problem, frozenset())
    waiting = _waiting(problem)
    best = 0.0
    for load, values in zip(run.loads, waiting, strict=True):
        if load > budget:
            cost = _least_for(problem, values, load - budget)
            if cost is None:
                return None
            best = max(best, cost)
    return best


def _waiting(problem: Problem) -> list[list[int]]:
    """The forward values that wait in each operation for backward readers, later ones, alone."""
    found: list[list[int]] = [[] for _ in problem.operations]
    for value, readers in enumerate(problem.readers):
        behind = [at for at in readers if at >= problem.backward]
        if not behind or not problem.is_forward(value):
            continue
        begun = max([problem.values[value].writer, *readers[: len(readers) - len(behind)]])
        for at in range(begun + 1, behind[-1]):
            if at not in behind:
                found[at].append(value)
    return found


def _least_for(problem: Problem, values: list[int], nbytes: int) -> float | None:
    """Microseconds for making values of so many bytes again, if parts of them would do."""
    sizes: dict[int, int] = defaultdict(int)
    for value in values:
        sizes[problem.values[value].writer] += problem.values[value].nbytes
    spent = 0.0
    for writer in sorted(sizes, key=lambda one: problem.operations[one].us / max(1, sizes[one])):
        share = min(1.0, nbytes / max(1, sizes[writer]))
        spent += share * problem.operations[writer].us
        nbytes -= sizes[writer]
        if nbytes <= 0:
            return spent
    return None
