"""Allocation problems with a plan of known height: made from solved ones, or at random.

A ``Packing`` is buffers that lie without overlap below a height. Each function makes another packing, so that
its buffers without their offsets are a problem with a capacity that some plan keeps::

    reversed_in_time   the last step first
    split              some buffers cut in two, in time or in bytes
    inflated           some buffers grown into the gaps of the plan, in bytes or in time
    subset             some buffers left out
    scaled_addresses   every stretch of addresses grown or shrunk, gaps too
    concatenated       one packing after the other in time, some buffers alive across the seam
    stacked            one packing above the other in bytes
    perfect_packing    a rectangle of bytes and steps cut up: no gap anywhere
    random_net         random lives, most of them short, with a quick plan

Every problem of ``derived_problems`` has a random stream of its own, seeded with the seed and the problem's
name: which others are made has no influence on it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tvm_mxplan.core.allocation import Item, Plan, Problem, Rectangle, solve

_SCOPE = "global"
_PERFECT_STEPS = 400
_PERFECT_BYTES = 1 << 20
_GRAIN = 512
"""Bytes of which every cut of a perfect packing is a multiple."""


class Buffer(NamedTuple):
    """Bytes ``[offset, offset + nbytes)``, alive in the steps ``[birth, death)``."""

    birth: int
    death: int
    nbytes: int
    offset: int

    @property
    def end(self) -> int:
        """First byte behind the buffer."""
        return self.offset + self.nbytes

    def meets_in_time(self, other: Buffer) -> bool:
        """True if both are alive at some step."""
        return self.birth < other.death and other.birth < self.death

    def meets_in_bytes(self, other: Buffer) -> bool:
        """True if both have some byte."""
        return self.offset < other.end and other.offset < self.end


@dataclass(frozen=True, slots=True)
class Packing:
    """Buffers that do not overlap and end at ``height`` or below."""

    buffers: tuple[Buffer, ...]
    height: int

    @property
    def steps(self) -> int:
        """First step after which no buffer is alive."""
        return max(buffer.death for buffer in self.buffers)

    def problem(self) -> Problem:
        """The buffers without their offsets, to be laid into ``height`` bytes."""
        rectangles = (Rectangle(b.birth, b.death, 0, b.nbytes) for b in self.buffers)
        items = (Item(f"b{i}", (rectangle,), 1, _SCOPE) for i, rectangle in enumerate(rectangles))
        return Problem(tuple(items), self.height)

    def plan(self) -> Plan:
        """The offsets: an answer to ``problem``."""
        return Plan(tuple(buffer.offset for buffer in self.buffers), {_SCOPE: self.height})


def packing_of(problem: Problem, plan: Plan, height: int) -> Packing:
    """The packing that a plan makes of a problem in which every item is one rectangle."""
    pairs = zip(problem.items, plan.offsets, strict=True)
    return Packing(tuple(Buffer(item.birth, item.death, item.extent, base) for item, base in pairs), height)


def derived_problems(
    bases: Mapping[str, Packing],
    seed: int,
    nets: Iterable[int] = (100, 200, 350),
    perfect: Iterable[int] = (40, 80, 150),
) -> dict[str, Packing]:
    """All kinds of problems, by name.

    Parameters
    ----------
    bases : mapping
        Packings to derive others from, by name. Neighbours are also put together.
    seed : int
        The same one makes the same problems of the same bases.
    nets, perfect : iterable of int
        Numbers of buffers of the random nets and of the perfect packings.
    """
    return {
        name: packing
        for source in (_of_one(bases, seed), _of_two(bases, seed), _of_none(nets, perfect, seed))
        for name, packing in source
    }


def _of_one(bases: Mapping[str, Packing], seed: int) -> Iterator[tuple[str, Packing]]:
    for base, packing in bases.items():
        yield f"{base} reversed", reversed_in_time(packing)
        yield (name := f"{base} split"), split(packing, _dice(seed, name), share=0.2)
        yield (name := f"{base} inflated"), inflated(packing, _dice(seed, name), share=0.5)
        yield (name := f"{base} filled"), inflated(packing, _dice(seed, name), rounds=2)
        dice = _dice(seed, name := f"{base} subset")
        yield name, inflated(subset(packing, dice, keep=0.85), dice, share=0.7)
        yield (name := f"{base} scaled"), scaled_addresses(packing, _dice(seed, name))


def _of_two(bases: Mapping[str, Packing], seed: int) -> Iterator[tuple[str, Packing]]:
    bridges = itertools.cycle((6, 12))
    for first, second in itertools.pairwise(bases):
        dice = _dice(seed, name := f"{first} then {second}")
        yield name, concatenated(bases[first], bases[second], dice, next(bridges))
        yield f"{first} under {second}", stacked(bases[first], bases[second])


def _of_none(nets: Iterable[int], perfect: Iterable[int], seed: int) -> Iterator[tuple[str, Packing]]:
    for count in nets:
        dice = _dice(seed, name := f"net {count}")
        yield name, inflated(random_net(count, dice), dice, share=0.6)
        dice = _dice(seed, name := f"net {count} filled")
        yield name, inflated(random_net(count, dice), dice, rounds=2)
    for count in perfect:
        yield (name := f"perfect {count}"), perfect_packing(count, _dice(seed, name))
        dice = _dice(seed, name := f"near perfect {count}")
        yield name, subset(perfect_packing(count, dice), dice, keep=0.85)


def _dice(seed: int, name: str) -> random.Random:
    return random.Random(f"{seed} {name}")


def reversed_in_time(packing: Packing) -> Packing:
    """The last step first."""
    steps = packing.steps
    turned = (b._replace(birth=steps - b.death, death=steps - b.birth) for b in packing.buffers)
    return Packing(tuple(turned), packing.height)


def split(packing: Packing, dice: random.Random, share: float) -> Packing:
    """Cuts about ``share`` of the buffers in two: one after the other, or one above the other."""
    buffers: list[Buffer] = []
    for buffer in packing.buffers:
        cut, in_time = dice.random() < share, dice.random() < 0.5
        if cut and in_time and buffer.death - buffer.birth > 1:
            step = dice.randrange(buffer.birth + 1, buffer.death)
            buffers += [buffer._replace(death=step), buffer._replace(birth=step)]
        elif cut and buffer.nbytes > 1:
            low = dice.randrange(1, buffer.nbytes)
            upper = buffer._replace(offset=buffer.offset + low, nbytes=buffer.nbytes - low)
            buffers += [buffer._replace(nbytes=low), upper]
        else:
            buffers.append(buffer)
    return Packing(tuple(buffers), packing.height)


def inflated(packing: Packing, dice: random.Random, share: float = 1.0, rounds: int = 1) -> Packing:
    """Grows about ``share`` of the buffers, in random order, up, down, later or earlier.

    In bytes they take all the room up to their neighbours, in time half of it or all.
    """
    buffers = list(packing.buffers)
    for _ in range(rounds):
        for at in dice.sample(range(len(buffers)), len(buffers)):
            if dice.random() < share:
                others = buffers[:at] + buffers[at + 1 :]
                grow = dice.choice((_grown_up, _grown_down, _grown_later, _grown_earlier))
                grown = grow(buffers[at], others, packing)
                buffers[at] = _half_as_long(buffers[at], grown) if dice.random() < 0.5 else grown
    return Packing(tuple(buffers), packing.height)


def _grown_up(buffer: Buffer, others: Iterable[Buffer], packing: Packing) -> Buffer:
    above = (o.offset for o in others if o.meets_in_time(buffer) and o.offset >= buffer.end)
    return buffer._replace(nbytes=min(above, default=packing.height) - buffer.offset)


def _grown_down(buffer: Buffer, others: Iterable[Buffer], packing: Packing) -> Buffer:
    below = (o.end for o in others if o.meets_in_time(buffer) and o.end <= buffer.offset)
    floor = max(below, default=0)
    return buffer._replace(offset=floor, nbytes=buffer.end - floor)


def _grown_later(buffer: Buffer, others: Iterable[Buffer], packing: Packing) -> Buffer:
    return buffer._replace(death=_room_after(buffer, others, packing.steps))


def _grown_earlier(buffer: Buffer, others: Iterable[Buffer], packing: Packing) -> Buffer:
    before = (o.death for o in others if o.meets_in_bytes(buffer) and o.death <= buffer.birth)
    return buffer._replace(birth=max(before, default=0))


def _half_as_long(buffer: Buffer, grown: Buffer) -> Buffer:
    """``grown`` with half of the steps that it has more than ``buffer``."""
    return grown._replace(
        birth=(buffer.birth + grown.birth + 1) // 2, death=(buffer.death + grown.death) // 2
    )


def _room_after(buffer: Buffer, others: Iterable[Buffer], steps: int) -> int:
    """Step until which the bytes of a buffer stay free after its life."""
    later = (o.birth for o in others if o.meets_in_bytes(buffer) and o.birth >= buffer.death)
    return min(later, default=steps)


def subset(packing: Packing, dice: random.Random, keep: float) -> Packing:
    """About ``keep`` of the buffers, one at least."""
    kept = tuple(buffer for buffer in packing.buffers if dice.random() < keep)
    return Packing(kept or packing.buffers[:1], packing.height)


def scaled_addresses(packing: Packing, dice: random.Random) -> Packing:
    """Multiplies every stretch between two addresses at which a buffer begins or ends by 0.6 to 1.4."""
    edges = sorted({0, packing.height, *(edge for b in packing.buffers for edge in (b.offset, b.end))})
    moved = {0: 0}
    for low, high in itertools.pairwise(edges):
        moved[high] = moved[low] + max(1, int((high - low) * dice.uniform(0.6, 1.4)))
    buffers = (
        b._replace(offset=moved[b.offset], nbytes=moved[b.end] - moved[b.offset]) for b in packing.buffers
    )
    return Packing(tuple(buffers), moved[packing.height])


def concatenated(first: Packing, second: Packing, dice: random.Random, bridges: int) -> Packing:
    """One packing after the other, where ``bridges`` random buffers live on while their bytes are free."""
    seam = first.steps
    moved = (b._replace(birth=b.birth + seam, death=b.death + seam) for b in second.buffers)
    buffers = [*first.buffers, *moved]
    for _ in range(bridges):
        at = dice.randrange(len(buffers))
        until = _room_after(buffers[at], buffers[:at] + buffers[at + 1 :], seam + second.steps)
        buffers[at] = buffers[at]._replace(death=until)
    return Packing(tuple(buffers), max(first.height, second.height))


def stacked(lower: Packing, upper: Packing) -> Packing:
    """One packing above the other, their steps stretched to the same length."""
    below = (b._replace(birth=b.birth * upper.steps, death=b.death * upper.steps) for b in lower.buffers)
    above = (
        Buffer(b.birth * lower.steps, b.death * lower.steps, b.nbytes, b.offset + lower.height)
        for b in upper.buffers
    )
    return Packing((*below, *above), lower.height + upper.height)


def perfect_packing(count: int, dice: random.Random) -> Packing:
    """Cuts a rectangle of steps and bytes into ``count`` buffers, large ones first more often than not."""
    whole = Buffer(0, _PERFECT_STEPS, _PERFECT_BYTES, 0)
    cells: list[Buffer] = [whole]
    least: list[Buffer] = []
    while cells and len(cells) + len(least) < count:
        areas = [(cell.death - cell.birth) * cell.nbytes * dice.uniform(0.2, 1) for cell in cells]
        cell = cells.pop(areas.index(max(areas)))
        halves = _halves(cell, dice)
        if halves:
            cells += halves
        else:
            least.append(cell)
    return Packing((*cells, *least), whole.nbytes)


def _halves(cell: Buffer, dice: random.Random) -> list[Buffer]:
    """A cell cut in time or in bytes; none if there is no room for either."""
    in_time, in_bytes = cell.death - cell.birth > 3, cell.nbytes > 2 * _GRAIN
    if in_time and (not in_bytes or dice.random() < 0.5):
        step = dice.randrange(cell.birth + 1, cell.death)
        return [cell._replace(death=step), cell._replace(birth=step)]
    if in_bytes:
        low = dice.randrange(1, cell.nbytes // _GRAIN) * _GRAIN
        upper = cell._replace(offset=cell.offset + low, nbytes=cell.nbytes - low)
        return [cell._replace(nbytes=low), upper]
    return []


def random_net(count: int, dice: random.Random) -> Packing:
    """Lives as in a network: most of a few steps, some long, few over half of it; laid without a search."""
    births = max(1, count * 2 // 3)
    items: list[Item] = []
    for at in range(count):
        birth, kind = dice.randrange(births), dice.random()
        if kind < 0.7:
            life = 1 + int(dice.expovariate(1 / 4))
        elif kind < 0.93:
            life = 1 + int(dice.expovariate(1 / 25))
        else:
            life = dice.randrange(10, max(11, births // 2))
        nbytes = dice.choice((64, 256, 1024, 3072, 4096, 8192)) * dice.randrange(1, 17)
        death = min(births + 5, birth + life)
        items.append(Item(f"b{at}", (Rectangle(birth, death, 0, nbytes),), 1, _SCOPE))
    problem = Problem(tuple(items))
    plan = solve(problem, max_nodes=0)
    return packing_of(problem, plan, plan.height)
