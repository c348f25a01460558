"""Dimensions of logical shapes: integers, or expressions over named symbols.

A symbol is bound at run time by one axis of one region input.  Expressions keep just the operators
that shape inference produces, so that the runtime can evaluate them without a compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operator = Literal["+", "-", "*", "//", "%", "max", "min"]
OPERATORS: tuple[Operator, ...] = ("+", "-", "*", "//", "%", "max", "min")


@dataclass(frozen=True)
class Symbol:
    """A dimension known only at run time."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Expr:
    """``left operator right`` over dimensions; ``//`` and ``%`` round towards minus infinity."""

    operator: Operator
    left: Dim
    right: Dim

    def __str__(self) -> str:
        if self.operator in ("max", "min"):
            return f"{self.operator}({self.left}, {self.right})"
        return f"({self.left} {self.operator} {self.right})"


Dim: TypeAlias = "int | Symbol | Expr"
Shape: TypeAlias = "tuple[Dim, ...]"

LARGEST_EXTENT = 2**31 - 1
"""The largest number that a symbol may be bounded by."""


def evaluate(dim: Dim, symbols: Mapping[str, int]) -> int:
    """Value of ``dim`` with every symbol replaced by its number."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, Symbol):
        return symbols[dim.name]
    left, right = evaluate(dim.left, symbols), evaluate(dim.right, symbols)
    match dim.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//":
            return left // right
        case "%":
            return left % right
        case "max":
            return max(left, right)
        case "min":
            return min(left, right)


def at_ones(shape: Shape) -> list[int]:
    """The shape with 1 in the place of every symbol, each extent at least 1."""
    return [dim if isinstance(dim, int) else _at_ones(dim) for dim in shape]


def _at_ones(dim: Dim) -> int:
    try:
        return max(1, evaluate(dim, dict.fromkeys(symbols_of(dim), 1)))
    except ZeroDivisionError:  # by the difference of two symbols
        return 1


def symbols_of(dim: Dim) -> set[str]:
    """Names of the symbols that occur in ``dim``."""
    if isinstance(dim, int):
        return set()
    if isinstance(dim, Symbol):
        return {dim.name}
    return symbols_of(dim.left) | symbols_of(dim.right)


def is_static(shape: Shape) -> bool:
    """True if every dimension is a plain integer."""
    return all(isinstance(dim, int) for dim in shape)


def static_shape(shape: Shape) -> tuple[int, ...]:
    """The shape as integers; raises ValueError where a dimension is symbolic."""
    dims = tuple(dim for dim in shape if isinstance(dim, int))
    if len(dims) != len(shape):
        raise ValueError(f"shape ({', '.join(map(str, shape))}) has symbolic dimensions")
    return dims


def same_axes(shape: Shape, axes: Iterable[int], others: Iterable[int]) -> bool:
    """Whether two choices of axes are one, where those of one element make no difference."""
    return {at for at in axes if shape[at] != 1} == {at for at in others if shape[at] != 1}
