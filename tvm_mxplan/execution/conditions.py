"""Conditions on the sizes of a call, as text: ``t % 2 != 0``, ``n < m or trunc(n / 2) == 6``.

The text is Python's, of the operators and functions below and of numbers, and means what it means there.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_Meaning = Callable[[Mapping[str, int]], Any]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "float": float,
    "floor": math.floor,
    "int": int,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
    "trunc": math.trunc,
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}


@dataclass(frozen=True)
class Condition:
    """A condition.

    Attributes
    ----------
    names : of the dimensions that it is about.
    """

    text: str
    names: frozenset[str]
    meaning: _Meaning

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it holds of sizes by name; one that has no value does not."""
        try:
            return bool(self.meaning(sizes))
        except (ArithmeticError, ValueError):
            return False


@lru_cache(maxsize=1024)
def condition_of(text: str) -> Condition | None:
    """The condition that a text stands for; None where it stands for none."""
    names: set[str] = set()
    try:
        meaning = _meaning(ast.parse(text.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return Condition(text, frozenset(names), meaning)


def _meaning(node: ast.expr, names: set[str]) -> _Meaning:
    """The function that computes a part; the names in it join ``names``."""
    match node:
        case ast.Name(id=name):
            names.add(name)
            return lambda sizes: sizes[name]
        case ast.Constant(value=bool() | int() | float() as number):
            return lambda sizes: number
        case ast.UnaryOp(op=kind, operand=operand) if type(kind) in _UNARY:
            return _applied(_UNARY[type(kind)], [_meaning(operand, names)])
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _BINARY:
            return _applied(_BINARY[type(kind)], [_meaning(left, names), _meaning(right, names)])
        case ast.Call(func=ast.Name(id=function), args=[_, *_] as args, keywords=[]) if (
            function in _FUNCTIONS
        ):
            return _applied(_FUNCTIONS[function], [_meaning(arg, names) for arg in args])
        case ast.Compare(left=left, ops=kinds, comparators=more) if all(
            type(kind) in _COMPARED for kind in kinds
        ):
            parts = list(itertools.pairwise(_meaning(part, names) for part in (left, *more)))
            pairs = [_applied(_COMPARED[type(kind)], pair) for kind, pair in zip(kinds, parts, strict=True)]
            return lambda sizes: all(pair(sizes) for pair in pairs)
        case ast.BoolOp(op=kind, values=values):
            combined = all if isinstance(kind, ast.And) else any
            found = [_meaning(value, names) for value in values]
            return lambda sizes: combined(part(sizes) for part in found)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            met, then, other = (_meaning(part, names) for part in (test, body, orelse))
            return lambda sizes: (then if met(sizes) else other)(sizes)
    raise ValueError("no condition on sizes")


def _applied(function: Callable[..., Any], parts: Any) -> _Meaning:
    return lambda sizes: function(*(part(sizes) for part in parts))
