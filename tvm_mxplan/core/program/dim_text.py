"""Dimensions from text, as ``str`` of them and people write it: ``n``, ``past + seq``, ``max(n // 2, 1)``."""

from __future__ import annotations

import ast
from functools import lru_cache

from .dims import Dim, Expr, Operator, Symbol

_OPERATORS: dict[type[ast.operator], Operator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_LONGEST = 1000


@lru_cache(maxsize=256)
def dim_from_text(text: str) -> Dim | None:
    """The dimension that a text stands for; None where it stands for none."""
    if len(text) > _LONGEST:
        return None
    try:
        return _dim(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _dim(node: ast.expr) -> Dim:
    match node:
        case ast.Name(id=name):
            return Symbol(name)
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return Expr(_OPERATORS[type(operator)], _dim(left), _dim(right))
        case ast.Call(func=ast.Name(id="max" | "min" as operator), args=[left, right], keywords=[]):
            return Expr(operator, _dim(left), _dim(right))
    raise ValueError("no arithmetic over dimensions")
