"""The table of converters, by Relay's names of operators."""

from __future__ import annotations

from collections.abc import Callable

from ..node import Node, Value

Converter = Callable[[Node], Value]

TABLE: dict[str, Converter] = {}


def converts(*operators: str) -> Callable[[Converter], Converter]:
    """Enter a function as the converter of operators."""

    def enter(converter: Converter) -> Converter:
        for operator in operators:
            TABLE[operator] = converter
        return converter

    return enter
