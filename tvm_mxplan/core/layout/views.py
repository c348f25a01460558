"""Layouts of views: how a tensor seen in another shape or order is stored once what it views is stored anew.

    base  (1, 40, 56, 56)  declared abcd      view  (1, 56, 56, 40)  declared adbc, so the same bytes
    base  stored as acdb                      view  stored as abcd: what was a transposition costs nothing

Both shapes are taken apart into common factors, which stand in the declared bytes in one order.  Where those
of each of the view's dimensions stand together again in the base's new order, the view has a layout there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .layout import Layout, channels_last, parse_layout, plain_layout, same_bytes


@dataclass(frozen=True)
class Seen:
    """A shape, and the layout in which its bytes are declared."""

    shape: Sequence[Any]
    layout: str


@dataclass(frozen=True)
class _Factor:
    """A part of a dimension of the base and of one of the view; ``at`` is its place in the declared bytes."""

    base: int
    view: int
    extent: Any
    at: tuple[int, int]


def layout_through(base: Seen, view: Seen, stored: str) -> str | None:
    """The layout of ``view``, which has the bytes of ``base``, where these are in the layout ``stored``.

    None where no layout says it: factors of one dimension apart from each other, blocks that are padded or
    belong to several dimensions, shapes without common factors.
    """
    if stored == base.layout:
        return view.layout
    factors, layout = _factors(base, view), parse_layout(stored)
    if factors is None:
        return None
    outer, inner = factors, list[_Factor]()
    for block in layout.blocks:
        split = _split(outer, *block)
        if split is None or inner:
            return None
        outer, inner = split
    ordered = [factor for dim in layout.order for factor in outer if factor.base == dim]
    found = _together(ordered, inner, len(view.shape))
    if found is None:
        return None
    rank = len(view.shape)
    common = (plain_layout(rank), channels_last(rank)) if 3 <= rank <= 5 else (plain_layout(rank),)
    return next((name for name in common if same_bytes(name, found.tag, view.shape)), found.tag)


def _factors(base: Seen, view: Seen) -> list[_Factor] | None:
    """Common factors of both shapes in the order of the declared bytes; None where there are none."""
    left, right = _axes(base), _axes(view)
    found: list[_Factor] = []
    while left and right:
        (a, one), (b, two) = left.pop(), right.pop()
        extent = one
        if one != two:
            if not (isinstance(one, int) and isinstance(two, int)):
                return None
            extent = min(one, two)
            if max(one, two) % extent:
                return None
            (left if one > two else right).append((a, one // two) if one > two else (b, two // one))
        found.append(_Factor(a, b, extent, (-len(found), 0)))
    return None if left or right else found[::-1]


def _axes(seen: Seen) -> list[tuple[int, Any]]:
    """Dimensions and extents from the outermost to the innermost, without those of one element."""
    return [(dim, seen.shape[dim]) for dim in parse_layout(seen.layout).order if seen.shape[dim] != 1]


def _split(factors: list[_Factor], size: int, dim: int) -> tuple[list[_Factor], list[_Factor]] | None:
    """Factors without the innermost ``size`` elements of a dimension of the base, and those."""
    outer, inner = list(factors), list[_Factor]()
    for at, factor in reversed(list(enumerate(factors))):
        if factor.base != dim or size == 1:
            continue
        if not isinstance(factor.extent, int):
            return None
        if size % factor.extent == 0:
            inner.insert(0, outer.pop(at))
            size //= factor.extent
        elif factor.extent % size == 0:
            inner.insert(0, replace(factor, extent=size, at=(factor.at[0], 1)))
            outer[at] = replace(factor, extent=factor.extent // size)
            size = 1
        else:
            return None
    return (outer, inner) if size == 1 else None


def _together(outer: list[_Factor], inner: list[_Factor], rank: int) -> Layout | None:
    """The layout of a view whose factors stand in the order of ``outer``, then in the block ``inner``."""
    dims = list(dict.fromkeys(factor.view for factor in outer))
    runs = [
        factor.view for factor, before in zip(outer, [None, *outer], strict=False) if _begins(factor, before)
    ]
    places: dict[int, list[tuple[int, int]]] = {}
    for factor in (*outer, *inner):
        places.setdefault(factor.view, []).append(factor.at)
    blocked = list(dict.fromkeys(factor.view for factor in inner))
    if runs != dims or len(blocked) > 1 or any(at != sorted(at) for at in places.values()):
        return None
    size = 1
    for factor in inner:
        size *= factor.extent
    blocks = tuple((size, dim) for dim in blocked if dim in dims)
    dims += [dim for dim in blocked if dim not in dims]
    return Layout((*(dim for dim in range(rank) if dim not in dims), *dims), blocks)


def _begins(factor: _Factor, before: _Factor | None) -> bool:
    return before is None or before.view != factor.view
