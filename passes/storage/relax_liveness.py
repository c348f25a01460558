"""Live ranges of the allocations of a traced Relax function.

Time is counted in calls. Control flow has no loops, so the two branches of an `if` follow one another in
time; bytes that one branch does not need are free there, even while they wait for the other::

    step               a    b    c        a is used in the second branch alone
    0  f(x, a)         |
    1  if              |
    2    g(x, b)            |             b may stand where a is: whoever reads a never comes here
    3  else
    3    g(a, c)       |         |

Left to others: aliases (relax_aliases), what may share bytes (storage_problem).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .relax_aliases import Allocation, Branch, Node, StorageStep, Trace

Interval = tuple[int, int]


@dataclass
class Lives:
    """Live ranges of each allocation's bytes.

    Attributes
    ----------
    intervals : for each allocation its half-open intervals, in order of time.
    steps : the calls with their times.
    count : how many times there are.
    last : for each time the allocations whose bytes nobody needs afterwards.
    joined : pairs of allocations that are the same result of the two branches of an `if`.
    """

    intervals: list[list[Interval]]
    steps: list[tuple[int, StorageStep]] = field(default_factory=list)
    count: int = 0
    last: dict[int, frozenset[int]] = field(default_factory=dict)
    joined: list[tuple[int, int]] = field(default_factory=list)


def find_lives(trace: Trace) -> Lives:
    """Liveness over structured control flow, backwards."""
    lives = Lives([[] for _ in trace.tensors])
    times = _Times(lives)
    times.count(trace.nodes)
    times.backward(trace.nodes, frozenset())
    for intervals in lives.intervals:
        intervals.reverse()
    return lives


class _Times:
    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._time: dict[int, int] = {}

    def count(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Allocation):
                continue
            self._time[id(node)] = self._lives.count
            self._lives.count += 1
            if isinstance(node, StorageStep):
                self._lives.steps.append((self._time[id(node)], node))
            else:
                self._lives.joined.extend(node.joined)
                self.count(node.then)
                self.count(node.otherwise)

    def backward(self, nodes: Sequence[Node], live: frozenset[int]) -> frozenset[int]:
        """Returns the tensors that live before ``nodes`` if ``live`` lives after them."""
        for node in reversed(nodes):
            if isinstance(node, Allocation):
                live -= {node.tensor}
                continue
            time, after = self._time[id(node)], live
            if isinstance(node, Branch):
                otherwise = self.backward(node.otherwise, live - _made_in(node.then))
                live = otherwise | self.backward(node.then, live - _made_in(node.otherwise))
            live |= node.touches
            self._lives.last[time] = live - after
            for tensor in live:
                self._mark(tensor, time)
        return live

    def _mark(self, tensor: int, time: int) -> None:
        """Add ``time`` to intervals that are filled from the last to the first."""
        intervals = self._lives.intervals[tensor]
        if intervals and intervals[-1][0] == time + 1:
            intervals[-1] = (time, intervals[-1][1])
        else:
            intervals.append((time, time + 1))


def _made_in(nodes: Sequence[Node]) -> frozenset[int]:
    """Allocations made by ``nodes``: in the other branch they do not exist."""
    made: set[int] = set()
    for node in nodes:
        if isinstance(node, Allocation):
            made.add(node.tensor)
        elif isinstance(node, Branch):
            made |= _made_in(node.then) | _made_in(node.otherwise)
    return frozenset(made)
