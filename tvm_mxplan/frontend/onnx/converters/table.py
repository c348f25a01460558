"""The table that converters join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TABLE: dict[tuple[str, str], list[Converter]] = {}
"""Converters by domain and operator."""


@dataclass(frozen=True)
class Converter:
    """A function that converts one operator.

    Attributes
    ----------
    first_opset : the first version of the operator's domain that it is for.
    reads_scope : whether it also takes the scope of names, as operators with graphs inside do.
    """

    function: Callable[..., Any]
    first_opset: int = 1
    reads_scope: bool = False

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def converts(
    *operators: str, domain: str = "", first_opset: int = 1, reads_scope: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the table for these operators."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for operator in operators:
            row = TABLE.setdefault((domain, operator), [])
            row.append(Converter(function, first_opset, reads_scope))
        return function

    return enter
