"""Whether a file is TVMScript and nothing else, before TVM's parser sees it.

TVM's parser evaluates the expressions of a text as Python.  So the text is read as a syntax tree first, and
only what TVM's printer writes may stand in it: functions of a module, and names, numbers and calls of what
``R``, ``T`` and ``I`` hold.  Nothing of a file is executed that is more than that.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from ...errors import InvalidInputError, UnsupportedError

METADATA = "metadata"
_DEEPEST = 200
_MODULES = ("tvm.script.", "tvm.relax.op", "tvm.tirx.script", "tvm.relax.script")
_CALLABLE = {"range", "slice", "tuple", "list", "int", "float", "bool", "str", "len", "min", "max"}
_REFUSED = {"pyfunc", "py_func", "call_py_func", "parse", "macro", "inline", "hint_on_device", "print"}
_ALLOWED = (
    ast.Module,
    ast.ClassDef,
    ast.FunctionDef,
    ast.arguments,
    ast.arg,
    ast.Return,
    ast.Pass,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.With,
    ast.withitem,
    ast.For,
    ast.While,
    ast.If,
    ast.Assert,
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.keyword,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Subscript,
    ast.Slice,
    ast.UnaryOp,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)


@dataclass(frozen=True)
class Script:
    """TVMScript without imports and metadata, in its own lines, and the JSON of its metadata or ''."""

    text: str
    metadata: str
    reads_metadata: bool


def checked_script(text: str, source: str, names: Mapping[str, types.ModuleType]) -> Script:
    """The script in a text.

    Parameters
    ----------
    names : modules by the names that the script may use them under.

    Raises
    ------
    InvalidInputError : no Python, or no TVMScript.
    UnsupportedError : Python that TVM's printer does not write, which would be executed.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        place = f"{source}:{line}" if line else source
        reason = getattr(error, "msg", "") or type(error).__name__
        raise InvalidInputError(
            f"{place}: is no TVMScript ({reason}); expected what mod.script() prints"
        ) from error
    lines = text.splitlines(keepends=True)
    metadata, kept = "", list[ast.stmt]()
    for statement in tree.body:
        stated = _stated_metadata(statement)
        if stated is not None:
            metadata = stated
        elif not _is_import(statement) and not _is_documentation(statement):
            kept.append(statement)
            continue
        for number in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
            lines[number] = "\n"
    check = _Check(source, names)
    for statement in kept:
        check.statement(statement)
    if len(kept) != 1:
        raise InvalidInputError(
            f"{source}: {len(kept)} definitions; expected one class with @I.ir_module, as mod.script() prints"
        )
    return Script("".join(_with_infinities(kept[0], lines)), metadata, check.reads_metadata)


def _with_infinities(tree: ast.AST, lines: list[str]) -> list[str]:
    """Lines with ``R.const("-inf", ...)``, which TVM prints and does not read, written as
    ``R.const(float("-inf"), ...)``."""
    found = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "const"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value in ("inf", "-inf", "nan")
    ]
    mended = list(lines)
    for constant in sorted(found, key=lambda one: -one.col_offset):
        line = mended[constant.lineno - 1].encode()
        start, end = constant.col_offset, constant.end_col_offset or constant.col_offset
        whole = line[:start] + b"float(" + line[start:end] + b")" + line[end:]
        mended[constant.lineno - 1] = whole.decode()
    return mended


def _stated_metadata(statement: ast.stmt) -> str | None:
    """The JSON of ``metadata = tvm.ir.load_json(...)``; None for any other statement."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id="metadata")],
            value=ast.Call(func=func, args=[ast.Constant(value=str(stated))], keywords=[]),
        ):
            return stated if ast.unparse(func) == "tvm.ir.load_json" else None
    return None


def _is_import(statement: ast.stmt) -> bool:
    """Whether it imports the names of TVMScript, which stand for the same here."""
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").split(".")[0] == "tvm" or statement.module == "__future__"
    return isinstance(statement, ast.Import) and all(
        one.name.split(".")[0] == "tvm" for one in statement.names
    )


def _is_documentation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Check:
    """Walks a definition without recursion, and looks each node up in what is allowed."""

    def __init__(self, source: str, names: Mapping[str, types.ModuleType]) -> None:
        self._source = source
        self._names = names
        self.reads_metadata = False

    def statement(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.ClassDef | ast.FunctionDef) or not statement.decorator_list:
            self._refused(statement, "a statement outside of a module")
        todo: list[tuple[ast.AST, int]] = [(statement, 0)]
        while todo:
            node, depth = todo.pop()
            if depth > _DEEPEST:
                self._refused(node, f"expressions more than {_DEEPEST} deep")
            self._node(node)
            if isinstance(node, ast.Attribute):
                chain = self._chain(node)
                todo += [(chain, depth + 1)] if chain is not None else []
                continue
            todo += [(child, depth + 1) for child in ast.iter_child_nodes(node)]

    def _node(self, node: ast.AST) -> None:
        if not isinstance(node, _ALLOWED):
            self._refused(node, type(node).__name__)
        if isinstance(node, ast.ClassDef) and (node.bases or node.keywords):
            self._refused(node, "a class of another class")
        if isinstance(node, ast.Name) and node.id.startswith("__"):
            self._refused(node, f"the name {node.id}")
        if isinstance(node, ast.Name) and node.id == METADATA:
            self.reads_metadata = True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and isinstance(node.func.ctx, ast.Load)
        ):
            self._called(node.func)

    def _called(self, name: ast.Name) -> None:
        """A name that is called and is no function of the module is a function of Python's."""
        import builtins

        if hasattr(builtins, name.id) and name.id not in _CALLABLE:
            self._refused(name, f"a call of {name.id}")

    def _chain(self, node: ast.Attribute) -> ast.AST | None:
        """Returns the part of ``a.b.c`` left to look at: its root where that is no name of a module."""
        attributes: list[str] = []
        root: ast.AST = node
        while isinstance(root, ast.Attribute):
            attributes.insert(0, root.attr)
            root = root.value
        for attribute in attributes:
            if attribute.startswith("_") or attribute in _REFUSED:
                self._refused(node, f"the attribute {attribute}")
        if not isinstance(root, ast.Name) or root.id not in self._names:
            return root
        found: object = self._names[root.id]
        for attribute in attributes:
            if not isinstance(found, types.ModuleType):
                break
            found = getattr(found, attribute, None)
            if isinstance(found, types.ModuleType) and not found.__name__.startswith(_MODULES):
                self._refused(node, f"the module {found.__name__}")
        if isinstance(found, types.ModuleType):
            self._refused(node, f"the module {ast.unparse(node)}")
        return None

    def _refused(self, node: ast.AST, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{self._source}:{getattr(node, 'lineno', 1)}:{getattr(node, 'col_offset', 0) + 1}: {what}; "
            "expected what mod.script() prints: TVM's parser would execute this as Python"
        )
