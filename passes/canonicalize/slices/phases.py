"""Concatenations of all phases of a tensor, which are permutations of it.

    concat((x[0::2], x[1::2]), axis=2)     x (8, 3, 5)
    -> reshape(permute_dims(reshape(x, (4, 2, 3, 5)), (0, 2, 1, 3)), (4, 3, 10))

A phase holds every second element of an axis, say, or of several axes each.  Networks merge patches of an
image so, or turn an image into fewer pixels of more channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product

from tvm import relax

from ...relax_types import shape_of, slice_ranges
from ..rewriter import Site, is_call_to


@dataclass(frozen=True)
class _Phase:
    """A slice whose steps divide the axes that they go along.

    Attributes
    ----------
    source : what it is a slice of.
    steps, begins : by axis.
    """

    source: relax.Expr
    steps: dict[int, int]
    begins: dict[int, int]


def join_phases(site: Site, concat: relax.Call) -> relax.Expr | None:
    """The concatenation as a permutation; None where it isn't one of all phases in a regular order."""
    pieces = site.definition(concat.args[0])
    if not isinstance(pieces, relax.Tuple) or concat.attrs.axis is None or concat.ty.ndim < 1:
        return None
    phases = [_phase(site, piece) for piece in pieces.fields]
    first = phases[0] if phases else None
    if first is None or not first.steps or len(phases) != math.prod(first.steps.values()):
        return None
    begins = []
    for phase in phases:
        if phase is None or not phase.source.same_as(first.source) or phase.steps != first.steps:
            return None
        begins.append(phase.begins)
    order = _order(first.steps, begins)
    if order is None:
        return None
    return _permuted(site, first, order, int(concat.attrs.axis) % concat.ty.ndim, concat)


def _phase(site: Site, piece: relax.Expr) -> _Phase | None:
    """Slices of slices as one; None unless each takes an axis whole or every so many of its elements."""
    steps: dict[int, int] = {}
    begins: dict[int, int] = {}
    source, call = piece, site.definition(piece)
    while is_call_to(call, "strided_slice"):
        shape, ranges = shape_of(call.args[0]), slice_ranges(call)
        if shape is None or ranges is None:
            return None
        for axis, taken in ranges.items():
            extent = shape[axis]
            if taken == range(extent):  # type: ignore[arg-type]
                continue
            if axis in steps or taken.step < 2 or taken.start >= taken.step:
                return None
            if len(taken) * taken.step != extent:
                return None
            steps[axis], begins[axis] = taken.step, taken.start
        source = call.args[0]
        call = site.definition(source)
    return _Phase(source, steps, begins)


def _order(steps: dict[int, int], begins: Sequence[dict[int, int]]) -> tuple[int, ...] | None:
    """The axes by how seldom their phase changes from piece to piece."""
    for axes in permutations(steps):
        wanted = product(*(range(steps[axis]) for axis in axes))
        if all(tuple(begin[axis] for axis in axes) == one for begin, one in zip(begins, wanted, strict=True)):
            return axes
    return None


def _permuted(site: Site, phase: _Phase, order: Sequence[int], joined: int, concat: relax.Call) -> relax.Expr:
    apart: list[object] = []
    whole: dict[int, int] = {}
    within: dict[int, int] = {}
    for axis, dim in enumerate(phase.source.ty.shape.values):
        step = phase.steps.get(axis, 1)
        whole[axis] = len(apart)
        apart.append(dim if step == 1 else int(dim) // step)
        if step != 1:
            within[axis] = len(apart)
            apart.append(step)
    places: list[int] = []
    for axis in range(concat.ty.ndim):
        if axis == joined:
            places += [within[one] for one in order]
        places.append(whole[axis])
    turned = site.emit(relax.op.permute_dims(site.emit(relax.op.reshape(phase.source, apart)), places))
    return relax.op.reshape(turned, concat.ty.shape)
