"""An assignment without a search, for problems in which the solver finds none in its time.

Steps take, one after the other, the option that costs least beside those taken before.  Then any step changes
its option while that lowers the sum; what a change costs follows from how many give and want each form it is
about, so that a turn takes time in proportion to the problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .assignment import AssignmentProblem, Form, Option

_TURNS = 10
_LEAST = 1e-9
"""A change lowers the sum by more than rounding, as a share of an option's cost, so that changes end."""


def descended(problem: AssignmentProblem) -> list[int]:
    """Choices that no change of one step makes cheaper, or what ten turns reach.

    The budget is not looked at.
    """
    state = _State(problem)
    choices = [state.take(options) for options in problem.steps]
    for _ in range(_TURNS):
        before = list(choices)
        for at, options in enumerate(problem.steps):
            state.leave(options[choices[at]])
            choices[at] = state.take(options, choices[at])
        if choices == before:
            break
    return choices


class _State:
    """Counts of chosen options that give and that want each form."""

    def __init__(self, problem: AssignmentProblem) -> None:
        self._conversions = problem.conversions
        self._impossible = 1.0 + sum(max(option.cost for option in options) for options in problem.steps)
        self._impossible += sum(problem.conversions.values())
        self._gives: Counter[Form] = Counter()
        self._wants: Counter[Form] = Counter()

    def take(self, options: Sequence[Option], held: int = 0) -> int:
        """Take the option that adds least, the one that is held where others add as much."""
        costs = [self._added(option) for option in options]
        best = min(range(len(options)), key=costs.__getitem__)
        if costs[held] <= costs[best] + _LEAST * abs(costs[best]):
            best = held
        self._gives.update(options[best].gives)
        self._wants.update(set(options[best].wants))
        return best

    def leave(self, option: Option) -> None:
        self._gives.subtract(option.gives)
        self._wants.subtract(set(option.wants))

    def _added(self, option: Option) -> float:
        """The option's cost, and that of conversions that it needs or makes needless."""
        added = option.cost
        for form in set(option.wants):
            if not self._gives[form] and not self._wants[form] and form not in option.gives:
                added += self._conversions.get(form, self._impossible)
        for form in option.gives:
            if self._wants[form] and not self._gives[form]:
                added -= self._conversions.get(form, self._impossible)
        return added
