"""Lower bounds of the height: bytes that no plan can do without."""

from __future__ import annotations

from math import gcd

import numpy as np

from .instance import Instance, align_up, instances
from .problem import Problem


def lower_bound(problem: Problem) -> int:
    """Bytes that any plan needs, all scopes together."""
    return sum(lower_bounds(problem).values())


def lower_bounds(problem: Problem) -> dict[str, int]:
    """Bytes that any plan needs in each scope."""
    return {
        scope: max((instance_bound(instance) for instance in instances(problem, scope)), default=0)
        for scope in problem.scopes
    }


def instance_bound(instance: Instance) -> int:
    """Bytes that any plan of a connected part needs, from what is alive in each section.

    Every block begins at a multiple of ``grain``, the greatest common divisor of all alignments and
    relative offsets.  So the blocks alive together, rounded up to grains, are disjoint, and only the
    topmost grain counts by the bytes that are used in it::

        grain 64        block of 100 bytes        block of 80 bytes
        |#######|####...|#######|##.....|         256 bytes of grains, 208 bytes needed
        0      64      128     192     256
    """
    grain = grain_of(instance)
    change = np.zeros(instance.sections + 1, dtype=np.int64)
    spare = np.zeros(instance.sections, dtype=np.int64)
    for shape in instance.shapes:
        for block in shape.blocks:
            size = block.high - block.low
            rounded = align_up(size, grain)
            change[block.first] += rounded
            change[block.last] -= rounded
            if rounded > size:
                life = spare[block.first : block.last]
                np.maximum(life, rounded - size, out=life)
    load = np.cumsum(change[:-1]) - spare
    tallest = max(shape.extent for shape in instance.shapes)
    return max(tallest, int(load.max()))


def grain_of(instance: Instance) -> int:
    """Greatest number of which every block begins at a multiple."""
    grain = 0
    for shape in instance.shapes:
        grain = gcd(grain, shape.alignment, *(block.low for block in shape.blocks))
    return grain
