"""Reads a Relay module, or function, from the JSON that ``tvm.ir.save_json`` of TVM 0.7 to 0.19 wrote.

Expressions are made from their operands on, without recursion: real programs stand thousands deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from .attributes import TYPES, Kind
from .json_nodes import Nodes
from .places import NodePlaces, invalid, quoted, unsupported
from .syntax import Block, Call, Constant, Expr, Function, Global, If, Item, Module, Tuple, Var

_ATTRIBUTES = "relay.attrs."
_OPERANDS = {
    "relay.Tuple": ("fields",),
    "relay.TupleGetItem": ("tuple_value",),
    "relay.Call": ("op", "args"),
    "relay.If": ("cond", "true_branch", "false_branch"),
    "relay.Function": ("params", "body"),
    "relay.Var": (),
    "relay.Constant": (),
    "relay.Id": (),
    "relay.Let": (),
    "GlobalVar": (),
    "Op": (),
}
"""Fields that are expressions, or lists of them."""


def read(text: str, source: str) -> tuple[Module, NodePlaces]:
    """The module, and its places for messages.

    Raises
    ------
    InvalidInputError : the file is no JSON, or contradicts itself.
    UnsupportedError : expressions other than calls, tuples, let and if.
    """
    nodes = Nodes(text, source)
    reader = _Reader(nodes)
    if nodes.kind(nodes.root) == "relay.Function":
        return Module({"main": reader.function(nodes.root)}), nodes.places
    if nodes.kind(nodes.root) != "IRModule":
        kind = quoted(nodes.kind(nodes.root))
        invalid(nodes.places, nodes.root, f"is a {kind}; expected a Relay module or function at the root")
    functions: dict[str, Function] = {}
    for key, at in nodes.entries(nodes.follow(nodes.root, "functions")).items():
        name = key if isinstance(key, str) else nodes.text(key, "name_hint")
        functions[name] = reader.function(at)
    return Module(functions), nodes.places


class _Reader:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._done: dict[int, Expr] = {}

    def function(self, at: int) -> Function:
        if self._nodes.kind(at) != "relay.Function":
            kind = quoted(self._nodes.kind(at))
            unsupported(
                self._nodes.places, at, f"is a {kind}; expected Relay's functions alone in the module"
            )
        found = self._expression(at)
        if not isinstance(found, Function):
            invalid(self._nodes.places, at, "is no function")
        return found

    def _expression(self, root: int) -> Expr:
        """The expression, and all that it is made of, each made once."""
        todo, open_ = [root], set[int]()
        while todo:
            at = todo[-1]
            if at in self._done:
                todo.pop()
                continue
            missing = [one for one in self._needed(at) if one not in self._done]
            if not missing:
                self._done[at] = self._made(at)
                continue
            if at in open_:
                invalid(self._nodes.places, at, "is part of itself; expected expressions without cycles")
            open_.add(at)
            todo += reversed(missing)
        return self._done[root]

    def _needed(self, at: int) -> Iterator[int]:
        nodes, kind = self._nodes, self._nodes.kind(at)
        if kind == "relay.Let":
            chain = self._chain(at)
            for link in chain:
                yield nodes.follow(link, "var")
                yield nodes.follow(link, "value")
            yield nodes.follow(chain[-1], "body")
            return
        for name in _OPERANDS.get(kind) or ():
            child = nodes.follow(at, name)
            yield from nodes.members(child) if name in ("fields", "args", "params") else (child,)

    def _chain(self, at: int) -> list[int]:
        """The Lets that are each the body of the one before."""
        chain, seen = [at], {at}
        while self._nodes.kind(body := self._nodes.follow(chain[-1], "body")) == "relay.Let":
            if body in seen:
                invalid(self._nodes.places, body, "is part of itself; expected expressions without cycles")
            chain.append(body)
            seen.add(body)
        return chain

    def _made(self, at: int) -> Expr:
        """The expression of which all parts are made."""
        nodes, kind = self._nodes, self._nodes.kind(at)
        if kind == "relay.Var":
            name = nodes.text(nodes.follow(at, "vid"), "name_hint")
            return Var(at, name, nodes.type(nodes.follow(at, "type_annotation")))
        if kind == "relay.Constant":
            return Constant(at, nodes.array(at, "data"))
        if kind == "GlobalVar":
            return Global(at, nodes.text(at, "name_hint"))
        if kind == "relay.Call":
            return self._call(at)
        if kind == "relay.Tuple":
            return Tuple(at, self._several(at, "fields"))
        if kind == "relay.TupleGetItem":
            return Item(at, self._one(at, "tuple_value"), nodes.integer(at, "index"))
        if kind == "relay.If":
            return If(at, *(self._one(at, name) for name in _OPERANDS[kind]))
        if kind == "relay.Function":
            return Function(
                at, tuple(map(self._variable, self._members(at, "params"))), self._one(at, "body")
            )
        if kind == "relay.Let":
            chain = self._chain(at)
            bindings = tuple(
                (self._variable(nodes.follow(link, "var")), self._one(link, "value")) for link in chain
            )
            return Block(at, bindings, self._one(chain[-1], "body"))
        if kind == "Op":
            return Global(at, "")  # an operator: the call has its name
        return self._refused(at)

    def _refused(self, at: int) -> NoReturn:
        unsupported(
            self._nodes.places,
            at,
            f"is a {quoted(self._nodes.kind(at))}; expected calls, tuples, let, if and functions",
        )

    def _call(self, at: int) -> Call:
        nodes, op = self._nodes, self._nodes.follow(at, "op")
        callee = nodes.string(op) if nodes.kind(op) == "Op" else self._done[op]
        attributes = self._attributes(nodes.follow(at, "attrs")) if nodes.has(at, "attrs") else {}
        return Call(at, callee, self._several(at, "args"), attributes)

    def _attributes(self, at: int) -> dict[str, Any]:
        """Attributes that are known of the type; none of another."""
        nodes = self._nodes
        types = TYPES.get(nodes.kind(at).removeprefix(_ATTRIBUTES), {})
        read = {
            Kind.INT: lambda name: nodes.integer(at, name),
            Kind.FLOAT: lambda name: nodes.real(at, name),
            Kind.BOOL: lambda name: nodes.integer(at, name) != 0,
            Kind.TEXT: lambda name: nodes.text(at, name),
            Kind.NODE: lambda name: nodes.plain(nodes.follow(at, name)),
        }
        return {name: read[field.kind](name) for name, field in types.items() if nodes.has(at, name)}

    def _members(self, at: int, name: str) -> list[int]:
        return self._nodes.members(self._nodes.follow(at, name))

    def _several(self, at: int, name: str) -> tuple[Expr, ...]:
        return tuple(self._done[member] for member in self._members(at, name))

    def _one(self, at: int, name: str) -> Expr:
        return self._done[self._nodes.follow(at, name)]

    def _variable(self, at: int) -> Var:
        found = self._done[at]
        if not isinstance(found, Var):
            invalid(self._nodes.places, at, "is bound, and is no variable; expected a relay.Var")
        return found
