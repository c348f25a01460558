"""Questions about nodes of a syntax tree: those whose edits would show nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

TELLING = ("print", "warn", "log", "debug", "info", "progress", "cast", "super", "getLogger", "TypeVar")
BUILT_IN = ("bool", "int", "float", "str", "bytes", "tuple", "list", "dict", "set", "type", "object")


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def names_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def removable(node: ast.stmt) -> bool:
    """Whether the function may go on without it."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and not tells(node)
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Subscript)
    return isinstance(node, ast.Return | ast.Continue | ast.Break | ast.Raise | ast.AugAssign | ast.Delete)


def ends(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements behind which a function, or a turn of a loop, ends."""
    match body[-1:]:
        case [ast.If(body=inside, orelse=otherwise)]:
            yield from (*ends(inside), *ends(otherwise))
        case [ast.With(body=inside)]:
            yield from ends(inside)
        case [ast.Match(cases=cases)]:
            yield from (end for case in cases for end in ends(case.body))
        case [ast.Try(body=inside, handlers=handlers, orelse=otherwise, finalbody=[])]:
            yield from (*ends(otherwise or inside), *(end for one in handlers for end in ends(one.body)))
        case [statement]:
            yield statement


def gives_none(node: ast.stmt) -> bool:
    """Whether a statement is a ``return`` of nothing."""
    if not isinstance(node, ast.Return):
        return False
    return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)


def tells(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_telling(node.value)


def is_telling(node: ast.Call) -> bool:
    """Whether a call only says something: an exception, a line for the user, a type."""
    name = called(node)
    return name.endswith(("Error", "Warning")) or name in TELLING


def called(node: ast.Call) -> str:
    func = node.func
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def on_text(node: ast.BinOp) -> bool:
    """Whether a sum is one of text or of displays: the other operator would not even run."""
    displays = (ast.List, ast.Tuple, ast.JoinedStr, ast.ListComp, ast.Dict)
    return any(
        isinstance(side, displays)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        or (isinstance(side, ast.BinOp) and on_text(side))
        for side in (node.left, node.right)
    )


def is_type(node: ast.expr) -> bool:
    """Whether an expression is a type: ``X | None``, ``Literal[...]``, ``Callable[...]``."""
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return any(is_type(side) for side in (left, right))
        case ast.Subscript(value=ast.Name(id=name)):
            return name in ("Literal", "Callable", "Mapping", "Sequence", *BUILT_IN)
        case ast.Constant(value=None):
            return True
        case ast.Attribute() | ast.Name():
            # ``ir.Value | ir.Step``, the operands of isinstance; a class's name begins with a capital.
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            return (name[:1].isupper() and not name.isupper()) or name in BUILT_IN
    return False
