"""``RecoverRotary``: one operator in place of those that rotary places are written as.

    a, b   = halves of x, or its even and odd numbers
    turned = R.concat([R.negative(b), a], -1)
    result = R.add(R.multiply(x, cosines), R.multiply(turned, sines))      -> R.mxplan.rotary(x, ...)

    first  = R.subtract(R.multiply(a, cosines), R.multiply(b, sines))
    second = R.add(R.multiply(b, cosines), R.multiply(a, sines))
    result = R.concat([first, second], -1)                                 -> the same, tables by pairs

    R.concat([mxplan.rotary(x[..., :n]), x[..., n:]], -1)                  -> the same, the rest stays

Neighbours are pairs where turned or first and second are joined along a new last axis and reshaped.
Operands of sums and products may stand either way.  What something else reads of the parts stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.core.program.dims import Shape, is_static
from tvm_mxplan.operators.attention import ROTARY, rotary

from ...relax_types import dim_of, dtype_of, scalar_of, shape_of, slice_ranges
from ..rewriter import Site, is_call_to, rewrite_bindings


@dataclass(frozen=True)
class _Half:
    """One number of each pair of the rows of ``source``: the first ones, or the second ones."""

    source: relax.Expr
    second: bool
    interleaved: bool


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if dtype_of(value) != "float32":
        return None
    if is_call_to(value, "add"):
        return _turned_sum(site, value)
    if is_call_to(value, "concat"):
        part = _part(site, value)
        if part is not None:
            return part
    pair = _joined(site, value)
    return None if pair is None else _by_pairs(site, value, pair[0], pair[1])


# --- x * cosines + turned * sines ----------------------------------------------------------------------


def _turned_sum(site: Site, value: relax.Call) -> relax.Expr | None:
    products = [site.definition(arg) for arg in value.args]
    if not all(is_call_to(one, "multiply") for one in products):
        return None
    for straight, across in (products, reversed(products)):
        for turned, sines in (across.args, reversed(across.args)):
            found = _turned(site, turned)
            if found is None:
                continue
            source, interleaved = found
            for x, cosines in (straight.args, reversed(straight.args)):
                if site.is_same(x, source):
                    return _rotary(site, value, source, (cosines, sines), interleaved, pairs=1)
    return None


def _turned(site: Site, expr: relax.Expr) -> tuple[relax.Expr, bool] | None:
    """The source of which ``expr`` has the second numbers of pairs, negated, in front of the first ones."""
    pair = _joined(site, site.definition(expr))
    if pair is None:
        return None
    (in_front, behind), interleaved = pair
    negated = _negated(site, in_front)
    second = None if negated is None else _half(site, negated)
    first = _half(site, behind)
    if second is None or first is None or not second.second or first.second:
        return None
    if second.interleaved != interleaved or first.interleaved != interleaved:
        return None
    return (second.source, interleaved) if site.is_same(second.source, first.source) else None


def _negated(site: Site, expr: relax.Expr) -> relax.Expr | None:
    call = site.definition(expr)
    if is_call_to(call, "negative"):
        return call.args[0]
    if is_call_to(call, "multiply"):
        for at in (0, 1):
            if scalar_of(call.args[1 - at]) == -1.0:
                return call.args[at]
    return None


# --- first and second numbers apart --------------------------------------------------------------------


def _by_pairs(
    site: Site, value: relax.Call, numbers: tuple[relax.Expr, relax.Expr], interleaved: bool
) -> relax.Expr | None:
    first, second = (site.definition(one) for one in numbers)
    if not is_call_to(first, "subtract") or not is_call_to(second, "add"):
        return None
    straight, across = (list(_products(site, arg)) for arg in first.args)
    for a, cosines in straight:
        for b, sines in across:
            if a.second or not b.second or {a.interleaved, b.interleaved} != {interleaved}:
                continue
            if not site.is_same(a.source, b.source):
                continue
            if _is_second(site, second, a.source, (cosines, sines), interleaved):
                return _rotary(site, value, a.source, (cosines, sines), interleaved, pairs=2)
    return None


def _is_second(
    site: Site, call: relax.Call, source: relax.Expr, tables: tuple[relax.Expr, relax.Expr], interleaved: bool
) -> bool:
    """Whether ``call`` adds second numbers by cosines and first ones by sines."""
    wanted = {(True, 0), (False, 1)}
    found = set()
    for arg in call.args:
        for half, table in _products(site, arg):
            if half.interleaved == interleaved and site.is_same(half.source, source):
                found |= {(half.second, at) for at in (0, 1) if site.is_same(table, tables[at])}
    return wanted <= found


def _products(site: Site, expr: relax.Expr) -> Iterator[tuple[_Half, relax.Expr]]:
    """Both ways to read a product as numbers of pairs and a table."""
    call = site.definition(expr)
    if not is_call_to(call, "multiply"):
        return
    for at in (0, 1):
        half = _half(site, call.args[at])
        if half is not None:
            yield half, call.args[1 - at]


# --- the rest of a row stays ---------------------------------------------------------------------------


def _part(site: Site, value: relax.Call) -> relax.Expr | None:
    """A rotation of the first numbers of rows, joined with those behind them."""
    fields, shape = _fields(value), shape_of(value)
    if len(fields) != 2 or shape is None or not _is_last(value, shape):
        return None
    turned = site.definition(fields[0])
    if not ROTARY.is_called(turned) or site.reads(fields[0]) != 1:
        return None
    begun, rest = (_taken(site, expr) for expr in (turned.args[0], fields[1]))
    width = int(turned.attrs["width"])
    if begun is None or rest is None or not site.is_same(begun[0], rest[0]) or shape_of(begun[0]) != shape:
        return None
    if begun[1] != range(width) or rest[1] != range(width, shape[-1]):  # type: ignore[arg-type]
        return None
    kept = bool(turned.attrs["interleaved"])
    return rotary(begun[0], *turned.args[1:], width=width, interleaved=kept)


# --- pieces of rows ------------------------------------------------------------------------------------


def _half(site: Site, expr: relax.Expr) -> _Half | None:
    """``expr`` as the first or second numbers of the pairs of another tensor's rows."""
    found = _taken(site, expr)
    if found is None:
        return None
    source, places = found
    extent = shape_of(source)[-1]  # type: ignore[index]
    if not isinstance(extent, int) or extent % 2 or extent < 2:
        return None
    for second in (False, True):
        begin = extent // 2 if second else 0
        if extent > 2 and places == range(begin, begin + extent // 2):
            return _Half(source, second, False)
        if places == range(int(second), extent, 2):
            return _Half(source, second, True)
    return None


def _taken(site: Site, expr: relax.Expr) -> tuple[relax.Expr, range] | None:
    """The tensor of whose last axis alone ``expr`` has some places, and these."""
    call = site.definition(expr)
    if is_call_to(call, "take", "squeeze", "reshape"):
        return _taken_apart(site, call)
    if not is_call_to(call, "strided_slice"):
        return None
    ranges, last = slice_ranges(call), call.ty.ndim - 1
    return (call.args[0], ranges[last]) if ranges is not None and list(ranges) == [last] else None


def _taken_apart(site: Site, call: relax.Call) -> tuple[relax.Expr, range] | None:
    """The same of rows that were seen as pairs, or as two halves, of which one place is taken."""
    place = _single(site, call)
    if place is None:
        return None
    apart, axis, index = place
    seen = site.definition(apart)
    if not is_call_to(seen, "reshape"):
        return None
    source, whole, split = seen.args[0], shape_of(seen.args[0]), shape_of(seen)
    if whole is None or split is None or len(split) != len(whole) + 1 or split[:-2] != whole[:-1]:
        return None
    if not is_static((whole[-1],)) or shape_of(call) != (*whole[:-1], whole[-1] // 2):  # type: ignore[operator]
        return None
    if axis == len(split) - 1 and split[-1] == 2:
        return source, range(index, whole[-1], 2)  # type: ignore[arg-type]
    if axis == len(split) - 2 and split[-2] == 2:
        return source, range(index * split[-1], (index + 1) * split[-1])  # type: ignore[operator]
    return None


def _single(site: Site, call: relax.Call) -> tuple[relax.Expr, int, int] | None:
    """The tensor, axis and index of which ``call`` takes a single place, without the axis."""
    if is_call_to(call, "take"):
        index, shape = scalar_of(call.args[1]), shape_of(call.args[0])
        if index is None or shape is None or call.attrs.axis is None or shape_of(call.args[1]) != ():
            return None
        axis = int(call.attrs.axis) % len(shape)
        extent = shape[axis]
        return (call.args[0], axis, int(index) % extent) if isinstance(extent, int) else None
    one = site.definition(call.args[0])
    if not is_call_to(one, "strided_slice"):
        return None
    shape, cut = shape_of(one.args[0]), shape_of(one)
    if shape is None or cut is None:
        return None
    axes = [at for at, (whole, part) in enumerate(zip(shape, cut, strict=True)) if whole != part]
    if len(axes) != 1 or cut[axes[0]] != 1 or len(one.args) < 4:
        return None
    begin = [dim_of(field) for field in one.args[2].fields]
    if len(begin) != 1 or not is_static(tuple(begin)):  # type: ignore[arg-type]
        return None
    return one.args[0], axes[0], int(begin[0]) % shape[axes[0]]  # type: ignore[arg-type,operator]


def _joined(site: Site, value: relax.Expr) -> tuple[tuple[relax.Expr, relax.Expr], bool] | None:
    """Two tensors of numbers that become rows: one behind the other, or, as true says, as neighbours."""
    shape = shape_of(value)
    if shape is None:
        return None
    fields = _fields(value)
    if len(fields) == 2 and _is_last(value, shape) and is_call_to(value, "concat"):
        return (fields[0], fields[1]), False
    if not is_call_to(value, "reshape", "flatten"):
        return None
    apart = site.definition(value.args[0])
    fields, split = _fields(apart), shape_of(apart)
    if len(fields) != 2 or split is None or split[-1] != 2 or not _is_last(apart, split):
        return None
    if split[:-2] != shape[:-1]:
        return None
    if is_call_to(apart, "concat"):
        fields = [_without_last(site, field) for field in fields]
    return None if None in fields else ((fields[0], fields[1]), True)


def _without_last(site: Site, expr: relax.Expr) -> relax.Expr | None:
    """The tensor that ``expr`` gives one more axis at the end."""
    call = site.definition(expr)
    if not is_call_to(call, "expand_dims", "reshape"):
        return None
    shape, inner = shape_of(call), shape_of(call.args[0])
    return call.args[0] if inner is not None and shape == (*inner, 1) else None


def _fields(expr: relax.Expr) -> list[relax.Expr]:
    """The tensors that are concatenated or stacked."""
    if not is_call_to(expr, "concat", "stack") or not isinstance(expr.args[0], relax.Tuple):
        return []
    return list(expr.args[0].fields)


def _is_last(call: relax.Call, shape: Shape) -> bool:
    axis = call.attrs.axis
    return axis is not None and int(axis) % len(shape) == len(shape) - 1


# --- the operator --------------------------------------------------------------------------------------


def _rotary(
    site: Site,
    value: relax.Call,
    source: relax.Expr,
    tables: tuple[relax.Expr, relax.Expr],
    interleaved: bool,
    pairs: int,
) -> relax.Expr | None:
    """The rotation of ``source``; a table's rows have as many numbers, divided by ``pairs``."""
    shape = shape_of(source)
    if shape is None or len(shape) < 2 or shape_of(value) != shape or not isinstance(shape[-1], int):
        return None
    aligned = [_aligned(site, table, (*shape[:-1], shape[-1] // pairs)) for table in tables]
    if None in aligned or dtype_of(source) != "float32":
        return None
    return rotary(source, *aligned, width=shape[-1], interleaved=interleaved)


def _aligned(site: Site, table: relax.Expr, shape: Shape) -> relax.Expr | None:
    """A table of as many axes as ``shape``, to which it is broadcast, with all of its last axis."""
    own = shape_of(table)
    if own is None or not own or len(own) > len(shape) or own[-1] != shape[-1]:
        return None
    if any(dim not in (1, wanted) for dim, wanted in zip(own[::-1], shape[::-1], strict=False)):
        return None
    missing = len(shape) - len(own)
    return site.emit(relax.op.expand_dims(table, list(range(missing)))) if missing else table


@tvm.transform.module_pass(opt_level=0, name="RecoverRotary")
class RecoverRotary:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
