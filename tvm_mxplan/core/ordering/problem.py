"""Steps with the bytes that they hand to one another, and what an order of them takes.

    steps                            order 0 1 2 3 4            order 0 2 1 3 4
    0 writes a (100), 1 writes b      a                         a
    (100), 2 reads a and writes c     a b                       a c
    (1), 3 reads b and writes d       a b c    201 bytes        c b        101 bytes
    (1), 4 reads c and d              b c d                     c b d      102 bytes

A tensor lives from the step that writes it through the last step that touches it, whichever that is in the
order.  While a step runs, its own tensors and what it takes for itself (``transient``) are there too.  Bytes
are counted as if nothing were ever lost between tensors: a lower bound of the arena that the order needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tensor:
    """Bytes that one step writes and others read.

    Attributes
    ----------
    readers : steps that need them; they come after ``writer``.
    """

    nbytes: int
    writer: int
    readers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """Steps 0, 1, 2, ...; in that order they are legal.

    Attributes
    ----------
    steps : how many there are.
    tensors : what they hand on; readers depend on writers.
    transient : bytes that each step takes while it runs, its tensors aside; negative where it writes over
        what it reads for the last time.
    before : further pairs (earlier, later) that must keep their order.
    """

    steps: int
    tensors: tuple[Tensor, ...]
    transient: tuple[int, ...]
    before: tuple[tuple[int, int], ...] = ()

    def edges(self) -> Iterator[tuple[int, int]]:
        """All pairs (earlier, later)."""
        yield from self.before
        for tensor in self.tensors:
            for reader in tensor.readers:
                yield tensor.writer, reader


def peak_of(graph: Graph, order: Sequence[int]) -> int:
    """Most bytes at once if the steps run in ``order``."""
    place = {step: at for at, step in enumerate(order)}
    load = [graph.transient[step] for step in order]
    for tensor in graph.tensors:
        last = max(place[step] for step in (tensor.writer, *tensor.readers))
        for at in range(place[tensor.writer], last + 1):
            load[at] += tensor.nbytes
    return max(load, default=0)
