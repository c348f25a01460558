"""Named dimensions: what the user calls them, where they stand in the inputs, between which bounds they lie.

PyTorch drops the names of ``torch.export.Dim`` and keeps symbols (``s77``); the names come back here by the
places at which symbols stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .names import unique

Axes = Mapping[tuple[str, int], str]
"""Names of dimensions by input and axis."""


@dataclass(frozen=True)
class Bound:
    """A named dimension.

    Attributes
    ----------
    lower, upper : the least and the largest extent; None for one without a limit.
    """

    name: str
    lower: int = 0
    upper: int | None = None


def axis_names(arguments: Mapping[str, Any], dynamic_shapes: Any) -> dict[tuple[str, int], str]:
    """Returns the names of axes in the user's ``dynamic_shapes``.

    Parameters
    ----------
    arguments : the example inputs by the names of the model's parameters, nested as they are given.
    dynamic_shapes : as for ``torch.export.export``: by name, or in order, with names of dimensions as text
        or as anything that has ``__name__``.
    """
    found: dict[tuple[str, int], str] = {}

    def visit(path: tuple[str, ...], value: Any, spec: Any) -> None:
        if spec is None:
            return
        if isinstance(value, Mapping) and isinstance(spec, Mapping):
            for key in value:
                visit((*path, str(key)), value[key], spec.get(key))
        elif isinstance(value, list | tuple) and isinstance(spec, list | tuple):
            for at, (part, below) in enumerate(zip(value, spec, strict=False)):
                visit((*path, str(at)), part, below)
        elif hasattr(value, "shape"):
            rows = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
            for axis, dim in rows:
                name = dimension_name(dim)
                if name:
                    found[placeholder_name(path), int(axis) % max(len(value.shape), 1)] = name

    if isinstance(dynamic_shapes, list | tuple):
        dynamic_shapes = dict(zip(arguments, dynamic_shapes, strict=False))
    visit((), arguments, dynamic_shapes)
    return found


def dimension_name(dim: Any) -> str:
    """The name of a dimension as the user gives it; '' for numbers, None and PyTorch's hints."""
    if isinstance(dim, str):
        return dim
    name = getattr(dim, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else ""


def placeholder_name(path: Sequence[str]) -> str:
    """Returns PyTorch's name of the input at a place in the arguments."""
    return re.sub(r"\W", "_", "_".join(path)).lower()


def named_bounds(
    places: Iterable[tuple[str, int, str]],
    limits: Mapping[str, tuple[int, int | None]],
    names: Axes,
) -> dict[str, Bound]:
    """The named dimensions of a program, by PyTorch's symbols.

    Parameters
    ----------
    places : input, axis and symbol, for axes whose extent is a symbol alone.
    limits : the least and the largest extent by symbol.
    names : what the user calls axes; a symbol without a name is called by its first input and axis.
    """
    called: dict[str, str] = {}
    unnamed: dict[str, str] = {}
    for placeholder, axis, symbol in places:
        unnamed.setdefault(symbol, f"{placeholder}_{axis}")
        if (placeholder, axis) in names:
            called.setdefault(symbol, names[placeholder, axis])
    symbols = list(dict.fromkeys([*unnamed, *limits]))
    texts = unique(called.get(symbol) or unnamed.get(symbol, symbol) for symbol in symbols)
    return {
        symbol: Bound(text, *limits.get(symbol, (0, None)))
        for symbol, text in zip(symbols, texts, strict=True)
    }


def with_dimensions(dynamic_shapes: Any, make: Any) -> Any:
    """``dynamic_shapes`` with what ``make`` gives for each name that is text; the same for the same name."""
    made: dict[str, Any] = {}

    def visit(spec: Any) -> Any:
        if isinstance(spec, str):
            if spec not in made:
                made[spec] = make(spec)
            return made[spec]
        if isinstance(spec, Mapping):
            return {key: visit(value) for key, value in spec.items()}
        if isinstance(spec, list | tuple):
            return type(spec)([visit(value) for value in spec])
        return spec

    return visit(dynamic_shapes)
