"""Chooses an order: the graph falls into parts at steps that all others come before or after, and each
part is searched alone, the one that needs most first.

    0 -> {1, 2, 3} -> 4 -> {5, 6} -> 7        parts: [0], [1 2 3 4], [5 6 7]

A part that needs no more than another one does at its best keeps its order.  Limits are counts, so that
the same graph gets the same order anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .problem import Graph
from .search import Machine, State, beam, exact

DEFAULT_MAX_STATES = 4000
"""States that the exact search may visit in each part; some tenths of a second."""
DEFAULT_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Order:
    """A legal order.

    Attributes
    ----------
    peak : most bytes at once; never above that of the order 0, 1, 2, ...
    proven : no legal order has a smaller peak.
    states : how many sets of finished steps were looked at.
    """

    steps: tuple[int, ...]
    peak: int
    proven: bool
    states: int


def choose_order(graph: Graph, max_states: int = DEFAULT_MAX_STATES, width: int = DEFAULT_WIDTH) -> Order:
    """An order of small peak: the best one in parts small enough, a good one in others.

    Parameters
    ----------
    max_states : for the exact search of each part.
    width : states that the bounded search keeps after each step, where the exact one gives up.
    """
    machine = Machine(graph)
    parts = _parts(machine)
    starts = [State.start()]
    peaks = []
    for part in parts:
        end = machine.run(starts[-1].forget_peak(), part)
        peaks.append(end.peak)
        starts.append(end)
    orders = list(parts)
    floor, proven_peak, states = 0, 0, 0
    for at in sorted(range(len(parts)), key=lambda at: (-peaks[at], at)):
        if peaks[at] <= floor:
            continue
        start = starts[at].forget_peak(floor)
        found = exact(machine, start, parts[at], peaks[at], max_states)
        if found.proven:
            proven_peak = max(proven_peak, found.peak)
        else:
            found = min(found, beam(machine, start, parts[at], peaks[at], width), key=lambda one: one.peak)
        orders[at], peaks[at] = found.order, found.peak
        states += found.states
        floor = max(floor, found.peak)
    peak = max(peaks, default=0)
    return Order(tuple(step for order in orders for step in order), peak, proven_peak == peak, states)


def _parts(machine: Machine) -> list[Sequence[int]]:
    """The steps in their given order, cut behind each step that is before or after all others."""
    parts: list[Sequence[int]] = []
    begin = 0
    for step in range(machine.count):
        related = machine.ancestors[step] | machine.descendants[step]
        if related.bit_count() == machine.count - 1:
            parts.append(range(begin, step + 1))
            begin = step + 1
    if begin < machine.count:
        parts.append(range(begin, machine.count))
    return parts
