"""Negative indices that an importer made to count from the end, in operators of their own.

where(less(i, 0), add(i, extent), i)      extent: a constant, or axes of shape_to_tensor(shape_of(data))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from ..canonicalize.rewriter import is_call_to
from ..relax_types import RESHAPES, constant_of, scalar_of

Definition = Callable[[relax.Expr], relax.Expr]


def from_the_end(indices: relax.Expr, extents: Sequence[Any], definition: Definition) -> relax.Expr | None:
    """``i`` where ``indices`` are that for data of these extents; None for all others."""
    choice = definition(indices)
    if not is_call_to(choice, "where"):
        return None
    below, counted, given = choice.args
    below, counted = definition(below), definition(counted)
    if not is_call_to(below, "less") or not is_call_to(counted, "add"):
        return None
    zero = scalar_of(below.args[1])
    same = _is_one(below.args[0], given) and _is_one(counted.args[0], given)
    added = _numbers(counted.args[1], definition)
    if zero != 0 or not same or added is None or len(added) != len(extents):
        return None
    return given if all(_equal(a, b) for a, b in zip(added, extents, strict=True)) else None


def _is_one(a: relax.Expr, b: relax.Expr) -> bool:
    return a is b or a.same_as(b)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return bool(tvm_ffi.structural_equal(a, b))


def _numbers(expr: relax.Expr, definition: Definition) -> list[Any] | None:
    """Elements of a tensor of integers as far as they are known, symbolic ones too."""
    constant = constant_of(expr)
    if constant is not None:
        return [int(number) for number in constant.reshape(-1)]
    value = definition(expr)
    if is_call_to(value, "astype", *RESHAPES):
        return _numbers(value.args[0], definition)
    if is_call_to(value, "shape_to_tensor"):
        return _extents(definition(value.args[0]))
    if is_call_to(value, "take"):
        numbers, at = _numbers(value.args[0], definition), scalar_of(value.args[1])
        known = numbers is not None and at is not None and -len(numbers) <= at < len(numbers)
        return [numbers[int(at)]] if known else None  # type: ignore[index, arg-type]
    if is_call_to(value, "strided_slice"):
        numbers = _numbers(value.args[0], definition)
        bounds = [_integers(argument) for argument in value.args[1:]]
        if numbers is None or len(bounds) < 3 or any(bound is None or len(bound) != 1 for bound in bounds):
            return None
        step = bounds[3][0] if len(bounds) > 3 else 1  # type: ignore[index]
        return numbers[bounds[1][0] : bounds[2][0] : step] if step > 0 else None  # type: ignore[index]
    return None


def _integers(expr: relax.Expr) -> list[int] | None:
    fields = getattr(expr, "fields", None)
    if fields is None or not all(isinstance(field, tvm.tirx.IntImm) for field in fields):
        return None
    return [int(field) for field in fields]


def _extents(shape: relax.Expr) -> list[Any] | None:
    if is_call_to(shape, "shape_of"):
        shape = getattr(shape.args[0].ty, "shape", None)
    if not isinstance(shape, relax.ShapeExpr):
        return None
    return [int(dim) if isinstance(dim, tvm.tirx.IntImm) else dim for dim in shape.values]
