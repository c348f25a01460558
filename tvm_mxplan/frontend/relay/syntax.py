"""Relay programs as plain data: what the readers of text and of JSON make, and the importer walks.

Expressions are compared by identity: one that several others read stands in memory once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Dim = int | str | None
"""An extent, the name of one, or None for one of any size."""


@dataclass(frozen=True)
class TensorType:
    shape: tuple[Dim, ...]
    dtype: str


@dataclass(frozen=True)
class TupleType:
    fields: tuple[Type, ...]


@dataclass(frozen=True)
class OtherType:
    """A type that no tensor has, by what the file calls it."""

    name: str


Type = TensorType | TupleType | OtherType | None
"""None where the file states none."""


@dataclass(frozen=True, eq=False)
class Expr:
    """``place`` is a position in the text, or the number of a JSON node."""

    place: int


@dataclass(frozen=True, eq=False)
class Var(Expr):
    name: str
    type: Type


@dataclass(frozen=True, eq=False)
class Constant(Expr):
    value: np.ndarray


@dataclass(frozen=True, eq=False)
class Global(Expr):
    """The name of a function of the module."""

    name: str


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """``callee`` is an operator's name, or a function."""

    callee: str | Expr
    args: tuple[Expr, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Tuple(Expr):
    fields: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Item(Expr):
    """A field of a tuple."""

    source: Expr
    index: int


@dataclass(frozen=True, eq=False)
class Block(Expr):
    """Values that are bound one after the other, and the result behind them."""

    bindings: tuple[tuple[Var, Expr], ...]
    result: Expr


@dataclass(frozen=True, eq=False)
class If(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, eq=False)
class Function(Expr):
    params: tuple[Var, ...]
    body: Expr


@dataclass(frozen=True)
class Module:
    functions: Mapping[str, Function]


def operands(expr: Expr) -> Iterator[Expr]:
    """Yields the operands of the expression; branches, blocks and functions stand for themselves."""
    if isinstance(expr, Call):
        yield from expr.args
        if isinstance(expr.callee, Expr):
            yield expr.callee
    elif isinstance(expr, Tuple):
        yield from expr.fields
    elif isinstance(expr, Item):
        yield expr.source
    elif isinstance(expr, If):
        yield expr.condition
