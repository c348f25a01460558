"""Conditions that PyTorch puts on sizes, as texts that calls are held to (``execution/conditions.py``).

    L['x'].size()[1] % 2 != 0            guards: what torch.export took for granted when it chose a branch
    Eq(Mod(s27, 2), 1)                   assertions among the nodes
    t % 2 != 0                           the text, over the names of dimensions

Guards on strides, on numbers and on what is no tensor are left out, as are assertions about numbers in
tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....errors import UnsupportedError
from ....execution.conditions import condition_of
from ..dimensions import placeholder_name

Names = Mapping[str, str | int]
"""Names of dimensions by PyTorch's symbols, or the numbers in their place."""

_FUNCTIONS = {
    "_sym_sqrt": "sqrt",
    "sym_float": "float",
    "sym_int": "int",
    "sym_max": "max",
    "sym_min": "min",
}
"""Functions of PyTorch's as they are called in conditions."""
_LAYOUT = (".stride(", ".storage_offset(", "IsNonOverlappingAndDenseIndicator")


class _Elsewhere(Exception):
    """A condition is about more than sizes."""


def guards_of(program: Any, names: Names, source: str) -> list[str]:
    """The conditions under which an exported program is what its module computes.

    Raises
    ------
    UnsupportedError : a condition on sizes in words that are not known here.
    """
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    given = [
        placeholders[spec.arg.name]
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT" and spec.arg.name in placeholders
    ]

    def size(path: Sequence[str | int], axis: int) -> ast.expr:
        match path:
            case ["flat_args", int(at)] if at < len(given):
                node = given[at]
            case _:
                node = placeholders.get(placeholder_name([str(part) for part in path]))
        shape = getattr(node.meta.get("val"), "shape", ()) if node is not None else ()
        if axis >= len(shape):
            raise UnsupportedError(f"{source}: no input is called {path}, on whose size a condition is")
        return _named(shape[axis], names)

    texts = [_text(guard, names, size, source) for guard in getattr(program, "_guards_code", ())]
    return kept_conditions(texts)


def condition_text(condition: Any, names: Names, source: str) -> str:
    """A condition of PyTorch's, a ``SymBool``, as a text; '' for one about more than sizes of inputs."""
    expr = condition.node.expr
    if not {str(symbol) for symbol in expr.free_symbols} <= names.keys():
        return ""
    return _text(_printed(expr), names, _no_size, source)


def kept_conditions(texts: Sequence[str]) -> list[str]:
    """Those that can fail, each once."""
    return [text for text in dict.fromkeys(texts) if text and not _is_plain(text)]


def _is_plain(text: str) -> bool:
    """Whether a condition holds of whatever sizes."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        return ast.dump(node.left) == ast.dump(node.comparators[0])
    condition = condition_of(text)
    return condition is not None and not condition.names and condition.holds({})


def _text(code: str, names: Names, size: Callable[[Sequence[str | int], int], ast.expr], source: str) -> str:
    """Python's code over symbols and inputs as a condition over names; '' for one about more than sizes."""
    if any(word in code for word in _LAYOUT):
        return ""
    try:
        text = ast.unparse(_Renamed(names, size).visit(ast.parse(code.strip(), mode="eval")))
    except _Elsewhere:
        return ""
    if condition_of(text) is None:
        raise UnsupportedError(
            f"{source}: it is exported for sizes of which {text}, which a call cannot be held to; "
            "write the model without the branch that this belongs to, or export it with fixed sizes"
        )
    return text


class _Renamed(ast.NodeTransformer):
    """Replaces sizes of inputs and symbols by names, PyTorch's functions by Python's."""

    def __init__(self, names: Names, size: Callable[[Sequence[str | int], int], ast.expr]) -> None:
        self._names, self._size = names, size

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=place, attr="size"), args=[]),
                slice=ast.Constant(value=int(axis)),
            ):
                return self._size(_path(place), axis)
        raise _Elsewhere

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Name(_FUNCTIONS.get(node.attr, node.attr))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func if isinstance(node.func, ast.Name) else self.visit(node.func)
        return ast.Call(function, [self.visit(arg) for arg in node.args], node.keywords)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names:
            raise _Elsewhere
        value = self._names[node.id]
        return ast.Name(value) if isinstance(value, str) else ast.Constant(value)


def _named(size: Any, names: Names) -> ast.expr:
    """A size over names."""
    if isinstance(size, int):
        return ast.Constant(size)
    parsed = ast.parse(_printed(size.node.expr), mode="eval").body
    return _Renamed(names, _no_size).visit(parsed)


def _no_size(path: Sequence[str | int], axis: int) -> ast.expr:
    raise _Elsewhere


def _path(node: ast.expr) -> list[str | int]:
    """The place of an input among the arguments, ``L['k'][0]``."""
    match node:
        case ast.Name(id="L"):
            return []
        case ast.Subscript(value=below, slice=ast.Constant(value=str() | int() as part)):
            return [*_path(below), part]
    raise _Elsewhere


def _printed(expr: Any) -> str:
    """SymPy's expression as Python's code."""
    from torch.utils._sympy.printers import PythonPrinter

    return str(PythonPrinter().doprint(expr))
