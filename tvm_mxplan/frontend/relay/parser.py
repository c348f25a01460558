"""Reads Relay's text, version 0.0.5: what ``astext()`` of TVM 0.7 to 0.19 wrote.

    #[version = "0.0.5"]
    def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
      %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
      nn.relu(%0)
    }
    #[metadata]
    { ... }

Chains of bindings take no stack; expressions inside of expressions do, so those have a bound.  Types that
comments state are not read: they follow from the inputs.
"""

from __future__ import annotations

import functools
import re
from collections import ChainMap
from typing import Any

import numpy as np

from .lexer import Word
from .metadata import Metadata
from .places import TextPlaces, invalid, quoted, unsupported
from .reader import Reader
from .syntax import Block, Call, Constant, Expr, Function, Global, If, Item, Module, Tuple, Type, Var

VERSION = "0.0.5"
_INFIX = {
    "*": ("multiply", 3),
    "/": ("divide", 3),
    "+": ("add", 2),
    "-": ("subtract", 2),
    "<": ("less", 1),
    "<=": ("less_equal", 1),
    ">": ("greater", 1),
    ">=": ("greater_equal", 1),
    "==": ("equal", 0),
    "!=": ("not_equal", 0),
}
"""Operators by their signs, and how strongly they bind."""
_VERSION = re.compile(r'\s*#\[version\s*=\s*"([^"\n]{0,20})"\s*\]')
_METADATA = re.compile(r"^[ \t]*#\[metadata\][ \t]*\r?$", re.MULTILINE)
_KEYWORDS = {"let", "fn", "def", "if", "else", "type", "match", "extern", "free_var", "ref", "ref_read"}


def parse(text: str, source: str) -> tuple[Module, TextPlaces]:
    """The module that a text describes, and its places for messages.

    Raises
    ------
    InvalidInputError : the text is none of this version, or contradicts itself.
    UnsupportedError : algebraic data types, matches, references.
    """
    places = TextPlaces.of(source, text)
    version = _VERSION.match(text)
    if version is None:
        invalid(places, 0, f'expected #[version = "{VERSION}"], as TVM 0.7 to 0.19 wrote it')
    if version[1] != VERSION:
        invalid(
            places, 0, f"Relay's text of version {quoted(version[1])}; expected {VERSION}: print it again"
        )
    section = _METADATA.search(text, version.end())
    end = section.start() if section else len(text)
    metadata = Metadata.of(text[section.end() :], source) if section else None
    return _Parser(text, (version.end(), end), places, metadata).module(), places


class _Parser(Reader):
    """Recursive descent over the words of a text; ``_scope`` has what names stand for."""

    def __init__(
        self, text: str, span: tuple[int, int], places: TextPlaces, metadata: Metadata | None
    ) -> None:
        super().__init__(text, span, places, metadata)
        self._scope: ChainMap[str, Expr] = ChainMap()
        self._free: list[Var] = []

    def module(self) -> Module:
        functions: dict[str, Function] = {}
        while self._is_name("def"):
            self._take()
            name = self._expect("global", "a function's name, as @main")
            if name.text in functions:
                invalid(
                    self._places, name.place, f"{quoted(name.text)} is defined twice; give it another name"
                )
            if self._next.text == "=":
                unsupported(
                    self._places, name.place, "this function is not Relay's; remove it from the module"
                )
            functions[name.text] = self._function(name.place)
        if self._is_name("type") or self._is_name("extern"):
            unsupported(
                self._places, self._next.place, "algebraic data types are not read; use tensors and tuples"
            )
        if not functions and self._next.kind != "end":
            functions["@main"] = self._expression_alone()
        if self._next.kind != "end":
            self._wrong("def, #[metadata] or the end of the file")
        if not functions:
            invalid(self._places, self._next.place, "no function; expected def @main(...) { ... }")
        return Module({name.removeprefix("@"): function for name, function in functions.items()})

    def _expression_alone(self) -> Function:
        """The text of one function, or of an expression over free variables."""
        place = self._next.place
        body = self._block()
        if isinstance(body, Function) and not self._free:
            return body
        return Function(place, tuple(self._free), body)

    def _function(self, place: int) -> Function:
        """A function from its parameters on."""
        outside, self._scope = self._scope, self._scope.new_child()
        if self._next.text == "[":
            unsupported(self._places, self._next.place, "functions over types are not read; give it one type")
        params: list[Var] = []
        self._sign("(")
        while self._next.text != ")":
            if self._next.kind == "local":
                params.append(self._new_variable())
                self._scope[f"%{params[-1].name}"] = params[-1]
            else:
                self._attribute(self._take())
            if self._next.text != ")":
                self._sign(",")
        self._sign(")")
        if self._next.kind == "arrow":
            self._take()
            self._type()
        body = self._braces()
        self._scope = outside
        return Function(place, tuple(params), body)

    def _new_variable(self) -> Var:
        word = self._expect("local", "a variable, as %x")
        if self._next.text == "{":  # where it lives, which is one place here
            self._nested(self._map)
        type_: Type = None
        if self._next.text == ":":
            self._take()
            type_ = self._type()
        return Var(word.place, word.text[1:], type_)

    def _braces(self) -> Expr:
        self._sign("{")
        outside, self._scope = self._scope, self._scope.new_child()
        body = self._nested(self._block)
        self._scope = outside
        self._sign("}")
        return body

    def _block(self) -> Expr:
        """Bindings, one after the other, and the expression behind them."""
        place, bindings = self._next.place, list[tuple[Var, Expr]]()
        while True:
            if self._next.kind == "graph" and self._second().text == "=":
                name = self._take()
                self._take()
                self._scope[name.text] = self._expression()
            elif self._is_name("let"):
                self._take()
                variable = self._new_variable()
                self._sign("=")
                bindings.append((variable, self._expression()))
                self._scope[f"%{variable.name}"] = variable
            elif self._is_name("free_var"):
                self._take()
                self._free.append(self._new_variable())
                self._scope[f"%{self._free[-1].name}"] = self._free[-1]
            else:
                break
            self._sign(";")
        result = self._expression()
        return Block(place, tuple(bindings), result) if bindings else result

    def _expression(self) -> Expr:
        return self._nested(self._joined)

    def _joined(self, least: int = 0) -> Expr:
        """Operators between expressions, which people write and the printer does not."""
        left = self._called()
        while self._next.kind == "infix" and _INFIX[self._next.text][1] >= least:
            word = self._take()
            operator, binding = _INFIX[word.text]
            right = self._nested(functools.partial(self._joined, binding + 1))
            left = Call(word.place, operator, (left, right), {})
        return left

    def _called(self) -> Expr:
        expr = self._atom()
        while self._next.text == "(" or self._next.kind == "item":
            if self._next.kind == "item":
                word = self._take()
                expr = Item(word.place, expr, int(word.text[1:]))
            else:
                expr = self._call(expr.place, expr)
        return expr

    def _call(self, place: int, callee: str | Expr) -> Call:
        args: list[Expr] = []
        attributes: dict[str, Any] = {}
        self._sign("(")
        while self._next.text != ")":
            if self._next.kind == "name" and self._second().text == "=":
                word = self._take()
                name, value = self._attribute(word)
                if name in attributes:
                    invalid(
                        self._places, word.place, f"attribute {quoted(name)} is given twice; expected it once"
                    )
                attributes[name] = value
            else:
                args.append(self._expression())
            if self._next.text != ")":
                self._sign(",")
        self._sign(")")
        return Call(place, callee, tuple(args), attributes)

    def _atom(self) -> Expr:
        word = self._next
        if word.kind == "graph" or word.kind == "local":
            return self._variable(self._take())
        if word.kind == "global":
            return Global(word.place, self._take().text[1:])
        if word.kind == "number":
            return Constant(word.place, self._number(self._take()))
        if word.kind == "meta":
            return self._meta_constant(self._take())
        if word.text == "(":
            return self._tuple()
        if word.text == "{":
            return self._braces()
        if word.kind != "name":
            self._wrong("an expression")
        if word.text in ("True", "False"):
            return Constant(word.place, np.asarray(self._take().text == "True"))
        if word.text == "fn":
            return self._function(self._take().place)
        if word.text == "if":
            return self._if()
        if word.text in _KEYWORDS:
            unsupported(
                self._places, word.place, f"{word.text} is not read; expected tensors, tuples, let and if"
            )
        self._take()
        if self._next.text != "(":
            self._wrong(f"( behind the operator {quoted(word.text)}")
        return self._call(word.place, word.text)

    def _variable(self, word: Word) -> Expr:
        """Returns the expression that a name stands for; ``%x.0`` may be a name, or a field of ``%x``."""
        name, items = word.text, list[int]()
        while name not in self._scope:
            head, dot, tail = name.rpartition(".")
            if not dot or not tail.isdecimal():
                invalid(
                    self._places,
                    word.place,
                    f"{quoted(word.text)} is not defined before; expected its definition",
                )
            name = head
            items.append(int(tail))
        expr = self._scope[name]
        for index in reversed(items):
            expr = Item(word.place, expr, index)
        return expr

    def _tuple(self) -> Expr:
        place = self._take().place
        fields: list[Expr] = []
        comma = False
        while self._next.text != ")":
            fields.append(self._nested(self._block))
            comma = self._next.text == ","
            if comma:
                self._take()
            elif self._next.text != ")":
                self._wrong(", or )")
        self._take()
        return fields[0] if len(fields) == 1 and not comma else Tuple(place, tuple(fields))

    def _if(self) -> If:
        place = self._take().place
        self._sign("(")
        condition = self._expression()
        self._sign(")")
        then = self._braces()
        if not self._is_name("else"):
            self._wrong("else")
        self._take()
        return If(place, condition, then, self._braces())

    def _meta_constant(self, word: Word) -> Expr:
        found = self._meta(word)
        if not isinstance(found, np.ndarray):
            unsupported(
                self._places, word.place, f"{quoted(word.text)} is no tensor; expected relay.Constant"
            )
        return Constant(word.place, found)
