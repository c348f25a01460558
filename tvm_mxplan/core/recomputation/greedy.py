"""A choice of values to drop for any problem, and a bound of what the cheapest choice costs.

The choice grows: in the operation of most bytes, the value is dropped that frees the most bytes for the time
of making it again, with what it has to be made from where that is not there any more.  Then values are kept
again, the dearest first, as long as all of it fits.

The bound: in each operation, enough bytes must have been dropped.  If they could be dropped by parts, the
cheapest for each byte first, that would cost no more than any choice; the most of these costs counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .problem import Problem, Run, simulated


def greedy(problem: Problem, budget: int) -> frozenset[int]:
    """Values to drop; where the budget cannot be met, a choice of few bytes."""
    dropped: frozenset[int] = frozenset()
    run = best_run = simulated(problem, dropped)
    best = dropped
    while run.peak > budget:
        move = _best_move(problem, run, dropped)
        if not move:
            break
        dropped |= move
        run = simulated(problem, dropped)
        if run.peak < best_run.peak:
            best, best_run = dropped, run
    return _kept_again(problem, best, best_run, budget)


def _kept_again(problem: Problem, dropped: frozenset[int], run: Run, budget: int) -> frozenset[int]:
    """Fewer values, as long as the run takes no longer and no more than the budget."""
    most = max(budget, run.peak)
    dearest = sorted(dropped, key=lambda value: -problem.operations[problem.values[value].writer].us)
    for value in dearest:
        fewer = dropped - {value}
        tried = simulated(problem, fewer)
        if tried.peak <= most and tried.us <= run.us:
            dropped, run = fewer, tried
    return dropped


def _best_move(problem: Problem, run: Run, dropped: frozenset[int]) -> frozenset[int]:
    """The values that free the most bytes for the time, where a run has most; none where nothing does."""
    lives = _Lives(problem, run, dropped)
    peak = max(range(len(run.loads)), key=lambda at: run.loads[at])
    best: tuple[float, frozenset[int]] = (0.0, frozenset())
    for value in lives.idle(peak):
        move, nbytes, us = lives.move(value, peak)
        worth = nbytes / (us + 1e-3)
        if nbytes > 0 and worth > best[0]:
            best = worth, move
    return best[1]


class _Lives:
    """When the values of a run are alive, as they were first made."""

    def __init__(self, problem: Problem, run: Run, dropped: frozenset[int]) -> None:
        self.problem, self.dropped = problem, dropped
        self.again = {operation for operation, again in run.sequence if again}
        self.written: dict[int, int] = {}
        self.forward: dict[int, int] = {}
        self.backward: dict[int, list[int]] = defaultdict(list)
        for at, (operation, again) in enumerate(run.sequence):
            behind = again or operation >= problem.backward
            for value in problem.operations[operation].reads:
                if behind and value not in dropped:
                    self.backward[value].append(at)
                elif not behind:
                    self.forward[value] = at
            if not again:
                self.written.update(dict.fromkeys(problem.written[operation], at))

    def idle(self, at: int) -> Iterator[int]:
        """Values of the forward part that wait at ``at`` for backward readers alone."""
        for value, readers in self.backward.items():
            if self.problem.is_forward(value) and self.problem.values[value].nbytes:
                begun = max(self.written[value], self.forward.get(value, -1))
                if begun < at < readers[0]:
                    yield value

    def move(self, value: int, at: int) -> tuple[frozenset[int], int, float]:
        """The values to drop with one, the bytes that this frees at ``at``, and microseconds."""
        problem, needed = self.problem, self.backward[value][0]
        move, freed, us = {value}, problem.values[value].nbytes, 0.0
        stack, writers = [value], set(self.again)
        while stack:
            writer = problem.values[stack.pop()].writer
            if writer in writers:
                continue
            writers.add(writer)
            us += problem.operations[writer].us
            for read in problem.operations[writer].reads:
                if read in move or read in self.dropped or not problem.values[read].nbytes:
                    continue
                readers = self.backward.get(read, [])
                begun = max(self.written[read], self.forward.get(read, -1))
                if max([begun, *readers]) < needed:
                    move.add(read)
                    stack.append(read)
                    freed += problem.values[read].nbytes if readers and begun < at < readers[0] else 0
        return frozenset(move), freed, us


def least_us(problem: Problem, budget: int) -> float | None:
    """Microseconds that no choice within the budget can do without; None where none is within it."""
    run = simulated(problem, frozenset())
    lives = _Lives(problem, run, frozenset())
    idle: list[list[int]] = [[] for _ in run.loads]
    for value, readers in lives.backward.items():
        if problem.is_forward(value):
            begun = max(lives.written[value], lives.forward.get(value, -1))
            for at in range(begun + 1, readers[0]):
                idle[at].append(value)
    best = 0.0
    for load, waiting in zip(run.loads, idle, strict=True):
        if load > budget:
            cost = _least_for(problem, waiting, load - budget)
            if cost is None:
                return None
            best = max(best, cost)
    return best


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
