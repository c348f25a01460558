"""Plausible mistakes in one file: the rules that make them, over Python's syntax tree.

    kind        before                       after
    ----------  ---------------------------  ------------------------------------
    compare     a < b, a == b, a in b        a <= b, a != b, a not in b
    arithmetic  a + b, a // b, a | b         a - b, a * b, a & b
    boolean     a and b                      a or b; b
    sign        -a, not a                    a
    condition   if a:, x if a else y         if not (a):, x if not (a) else y
    filter      ... for x in y if a          ... for x in y if True
    constant    3, 0.5, True                 4, 1.5, False
    arguments   f(a, b)                      f(b, a)
    keyword     f(a, key=b)                  f(a)
    element     (a, b, c), {k: v, ...}       (a, b), {...}
    call        min, any                     max, all
    slice       a[b:c]                       a[:c], a[b:]
    statement   return, continue, raise, ... pass
    field       name: type = value           pass

Text is left alone (docstrings, messages, names), and so are annotations, what a ``raise`` says, calls that
only tell something, ``__repr__`` and ``__str__``, and ``assert``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from . import nodes
from .mutants import Mutant

# The spelling of an operator, and the one in its place.
COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.Pow: ("**", "*"), ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"), ast.BitXor: ("^", "|"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
COUNTERPARTS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Functions of two arguments that are the same in any order.
COMMUTING = (*COUNTERPARTS, "either", "gcd", "isclose", "maximum", "minimum", "structural_equal")
UNTOLD = ("__repr__", "__str__", "__format__")
# Only says that lengths agree, or what a user is told; no mistake that a right program shows.
IDLE_KEYWORDS = ("strict", "stacklevel", "match", "kw_only", "slots", "help")


@dataclass(frozen=True)
class _Place:
    """The surroundings of a node: the function's qualified name, the statement that runs it."""

    function: str = ""
    line: int = 0


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All edits of a file, in the order of the text, each once; see :func:`is_program`."""
    file = _File(path, source)
    found = file.statements(ast.parse(source).body, _Place())
    return sorted(dict.fromkeys(found), key=lambda mutant: (mutant.begin, mutant.end, mutant.after))


def is_program(mutant: Mutant, source: str) -> bool:
    """Whether the edit leaves a program, and another one."""
    try:
        return ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


class _File:
    """One file's text and the walk over its tree."""

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._data = source.encode()
        self._idle: set[int] = set()  # statements that say what happens anyway
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    # --- statements --------------------------------------------------------------------------------------

    def statements(self, body: Sequence[ast.stmt], place: _Place) -> Iterator[Mutant]:
        for node in body:
            yield from self._statement(node, place)

    def _statement(self, node: ast.stmt, outer: _Place, *, last: bool = False) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from self._definition(node, outer)
            return
        place = _Place(outer.function, node.lineno) if outer.line else outer
        if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom):
            return
        if nodes.is_docstring(node) or nodes.names_all(node):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if (
            outer.line
            and nodes.removable(node)
            and not (id(node) in self._idle or (isinstance(node, ast.Return) and last))
        ):
            yield self._edit("statement", node, "pass", place)
        if isinstance(node, ast.Raise) or nodes.tells(node):
            return
        if isinstance(node, ast.If):
            yield from self._negated(node.test, place)
        if isinstance(node, ast.For | ast.While):
            self._idle.update(id(end) for end in nodes.ends(node.body) if isinstance(end, ast.Continue))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "targets", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt):
                    inner = place if outer.line else outer
                    yield from self._statement(child, inner)
                elif isinstance(child, ast.ExceptHandler | ast.match_case):
                    yield from self.statements(child.body, place if outer.line else outer)
                    if isinstance(child, ast.match_case) and child.guard:
                        yield from self._expression(child.guard, place)
                elif isinstance(child, ast.withitem):
                    yield from self._expression(child.context_expr, place)
                elif isinstance(child, ast.expr) and not isinstance(getattr(child, "ctx", None), ast.Store):
                    yield from self._expression(child, place)

    def _definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, outer: _Place
    ) -> Iterator[Mutant]:
        name = f"{outer.function}.{node.name}" if outer.function else node.name
        if isinstance(node, ast.ClassDef):
            # A class's own body runs where the class is made; its methods know no line of it.
            yield from self._fields(node, name)
            yield from self.statements(node.body, _Place(name, outer.line))
            return
        if node.name in UNTOLD:
            return
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
        for default in defaults:
            yield from self._expression(default, _Place(name, node.lineno if outer.line else 0))
        self._idle.update(id(end) for end in nodes.ends(node.body) if nodes.gives_none(end))
        *body, last = node.body
        yield from self.statements(body, _Place(name, node.lineno))
        yield from self._statement(last, _Place(name, node.lineno), last=True)

    def _fields(self, node: ast.ClassDef, name: str) -> Iterator[Mutant]:
        if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
            return
        fields = [child for child in node.body if isinstance(child, ast.AnnAssign)]
        for field in fields[1:]:
            if field.value is not None:
                yield self._edit("field", field, "pass", _Place(name))

    # --- expressions -------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr, place: _Place) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr) or nodes.is_type(node):
            return
        yield from self._changed(node, place)
        if isinstance(node, ast.Call) and nodes.is_telling(node):
            return
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.keyword):
                    if child.arg not in IDLE_KEYWORDS:
                        yield from self._expression(child.value, place)
                elif isinstance(child, ast.comprehension):
                    yield from self._expression(child.iter, place)
                    for test in child.ifs:
                        yield self._edit("filter", test, "True", place)
                        yield from self._expression(test, place)
                elif isinstance(child, ast.arguments):
                    for default in child.defaults:
                        yield from self._expression(default, place)
                elif isinstance(child, ast.expr) and name != "annotation":
                    yield from self._expression(child, place)

    def _changed(self, node: ast.expr, place: _Place) -> Iterator[Mutant]:
        """Mutants of this node itself, not of those inside."""
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from self._between("compare", left, right, COMPARISONS[type(op)], place)
                if (
                    isinstance(op, ast.In | ast.NotIn)
                    and isinstance(right, ast.Tuple)
                    and len(right.elts) == 2
                ):
                    yield from self._shorter(right, right.elts, place)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                if not nodes.on_text(node):
                    yield from self._between("arithmetic", left, right, ARITHMETIC[type(op)], place)
            case ast.BoolOp(op=op, values=values):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                for left, right in pairwise(values):
                    yield from self._between("boolean", left, right, words, place)
                extents = [self._extent(value, node) for value in values]
                yield self._mutant("boolean", extents[0][0], extents[1][0], "", place)
                for (_, begin), (_, end) in pairwise(extents):
                    yield self._mutant("boolean", begin, end, "", place)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                if not (isinstance(operand, ast.Constant) and operand.value == 0):
                    word = "not" if isinstance(node.op, ast.Not) else "-"
                    yield self._edit("sign", node, self._text(node).removeprefix(word).lstrip(), place)
            case ast.IfExp(test=test):
                yield from self._negated(test, place)
            case ast.Constant(value=bool(value)):
                yield self._edit("constant", node, str(not value), place)
            case ast.Constant(value=int(value) | float(value)):
                yield self._edit("constant", node, repr(value + 1), place)
            case ast.Call():
                yield from self._call(node, place)
            case (
                ast.Tuple(elts=elts, ctx=ast.Load())
                | ast.List(elts=elts, ctx=ast.Load())
                | ast.Set(elts=elts)
            ):
                # A pair is taken apart as one: less of it would not even run.
                if len(elts) > (2 if isinstance(node, ast.Tuple) else 1):
                    yield from self._shorter(node, elts, place)
            case ast.Dict(keys=keys, values=values) if len(keys) > 1:
                for at, (key, value) in enumerate(zip(keys, values, strict=True)):
                    if key is not None:
                        begin = self._offset(key.lineno, key.col_offset)
                        end = self._end(value)
                        yield self._without(begin, end, "element", place, last=at == len(keys) - 1)
            case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
                for bound in (lower, upper):
                    if bound is not None:
                        yield self._edit("slice", bound, "", place)

    def _negated(self, test: ast.expr, place: _Place) -> Iterator[Mutant]:
        """The opposite of a condition, where no other operator and no ``not`` less says the same."""
        opposite = isinstance(test, ast.Compare) and not isinstance(
            test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE
        )
        if not opposite and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            yield self._edit("condition", test, f"not ({self._text(test)})", place)

    def _call(self, node: ast.Call, place: _Place) -> Iterator[Mutant]:
        name = nodes.called(node)
        if nodes.is_telling(node):
            return
        if isinstance(node.func, ast.Name) and name in COUNTERPARTS:
            yield self._edit("call", node.func, COUNTERPARTS[name], place)
        plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
        checks = name in ("isinstance", "issubclass", "getattr", "hasattr", "setattr", "zip")
        for first, second in pairwise(plain):
            texts = self._text(first), self._text(second)
            commutes = name in COMMUTING
            if texts[0] != texts[1] and not checks and not commutes and len(node.args) == len(plain):
                between = self._data[self._end(first) : self._begin(second)].decode()
                begin, end = self._begin(first), self._end(second)
                yield self._mutant("arguments", begin, end, f"{texts[1]}{between}{texts[0]}", place)
        for at, keyword in enumerate(node.keywords):
            if keyword.arg is None or keyword.arg in IDLE_KEYWORDS:
                continue
            last = at == len(node.keywords) - 1
            begin = self._offset(keyword.lineno, keyword.col_offset)
            yield self._without(begin, self._end(keyword.value), "keyword", place, last=last)

    def _shorter(
        self, node: ast.Tuple | ast.List | ast.Set, elts: Sequence[ast.expr], place: _Place
    ) -> Iterator[Mutant]:
        if isinstance(node, ast.Tuple) and self._data[self._begin(node)] != ord("("):
            return
        for gone in range(len(elts)):
            rest = ", ".join(self._text(value) for at, value in enumerate(elts) if at != gone)
            comma = "," if isinstance(node, ast.Tuple) and len(elts) == 2 else ""
            opening, closing = self._text(node)[0], self._text(node)[-1]
            yield self._edit("element", node, f"{opening}{rest}{comma}{closing}", place)

    # --- text --------------------------------------------------------------------------------------------

    def _without(self, begin: int, end: int, kind: str, place: _Place, *, last: bool) -> Mutant:
        """An item of a list of items, with the comma behind it, or, of the last one, the comma before it."""
        data = self._data
        if not last:
            end = data.index(b",", end) + 1
        else:
            stop = begin
            while data[stop - 1 : stop].isspace():
                stop -= 1
            begin = stop - 1 if data[stop - 1 : stop] == b"," else begin
        return self._mutant(kind, begin, end, "", place)

    def _edit(self, kind: str, node: ast.expr | ast.stmt, text: str, place: _Place) -> Mutant:
        return self._mutant(kind, self._begin(node), self._end(node), text, place)

    def _mutant(self, kind: str, begin: int, end: int, after: str, place: _Place) -> Mutant:
        before = self._data[begin:end].decode()
        return Mutant(self._path, place.function, kind, place.line, begin, end, before, after)

    def _between(
        self, kind: str, left: ast.expr, right: ast.expr, words: tuple[str, str], place: _Place
    ) -> Iterator[Mutant]:
        """The operator that stands between two operands, by another."""
        gap = self._data[self._end(left) : self._begin(right)].decode()
        begin = self._end(left) + len(gap[: gap.find(words[0])].encode())
        if words[0] in gap:
            yield self._mutant(kind, begin, begin + len(words[0]), words[1], place)

    def _extent(self, node: ast.expr, whole: ast.expr) -> tuple[int, int]:
        """The bytes of an operand of ``whole``, its brackets included."""
        begin, end = self._begin(node), self._end(node)
        while begin > self._begin(whole) and end < self._end(whole):
            before, behind = self._data[:begin].rstrip(), self._data[end:].lstrip()
            if not (before.endswith(b"(") and behind.startswith(b")")):
                break
            begin, end = len(before) - 1, len(self._data) - len(behind) + 1
        return begin, end

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._data[self._begin(node) : self._end(node)].decode()

    def _begin(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column
