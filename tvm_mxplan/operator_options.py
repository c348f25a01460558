"""Options that speak of single operators by their names: users may name parts of their model instead.

    {"layers": {"/layer1/conv": "off"}}    ->    {"layers": {"conv2d_0": "off", "add_0": "off"}}

A part of the model stands for all operators that come from it.  The name of an operator comes first, then
that of a kind where the option has kinds, then the whole name of a part, then the last one of its name.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import tvm

from .core.decisions.dispatch import is_operator_name
from .core.decisions.origin import Origin, Origins
from .errors import InvalidInputError
from .options import Options
from .passes.origins import origin_table
from .passes.region.name_operators import names_of

_SHOWN = 4

Told = TypeVar("Told", bound=str)
"""A choice for an operator: a name, which may be a literal type."""


def with_operators(options: Options, mod: tvm.IRModule) -> Options:
    """Options that name operators of ``mod``, which have their names, and nothing else.

    Raises
    ------
    InvalidInputError : a name that the model does not have, or that several of its parts have.
    """
    if not options.layers and not options.prefer and not options.precision_for:
        return options
    known = _Known(frozenset(names_of(mod)), origin_table(mod))
    layers = known.operators("layers", options.layers, frozenset())
    prefer = known.operators("prefer", options.prefer, known.kinds(options.prefer))
    wished = options.precision_for
    precision = known.operators("precision_for", wished, known.kinds(wished))
    return replace(options, layers=layers, prefer=prefer, precision_for=precision)


@dataclass(frozen=True)
class _Known:
    """The names of a model's operators, and what they come from."""

    names: Collection[str]
    origins: Mapping[str, Origins]

    def kinds(self, keys: Collection[str]) -> frozenset[str]:
        """Those that mean kinds of operators, or are meant to: nothing in the model has such a name."""
        relax = {str(name).rpartition(".")[2] for name in tvm.ir.Op.list_op_names()}
        return frozenset(
            key
            for key in keys
            if key in relax or not (key in self.names or is_operator_name(key) or self._meant(key))
        )

    def operators(self, option: str, given: Mapping[str, Told], kinds: Collection[str]) -> dict[str, Told]:
        """The option with names of operators; what is said of these comes before what is said of parts."""
        written = {key: choice for key, choice in given.items() if key in self.names or key in kinds}
        found: dict[str, Told] = {}
        for key, choice in given.items():
            if key not in written:
                found |= dict.fromkeys(self._operators_of(option, key), choice)
        return found | written

    def _operators_of(self, option: str, name: str) -> list[str]:
        meant = self._meant(name)
        if not meant:
            every = [*self.names, *{one.name for origins in self.origins.values() for one in origins}]
            close = difflib.get_close_matches(name, every, n=_SHOWN, cutoff=0.5)
            hint = f"the nearest are {', '.join(close)}" if close else "its report lists them"
            raise InvalidInputError(f"option {option}: the model has no operator {name!r}; {hint}")
        operators = [operator for operator, origins in self.origins.items() if meant & set(origins)]
        if len(meant) > 1:
            parts = ", ".join(sorted(map(str, meant))[:_SHOWN])
            raise InvalidInputError(
                f"option {option}: {name!r} may be {parts}; "
                f"give a whole name, or operators such as {', '.join(operators[:_SHOWN])}"
            )
        return operators

    def _meant(self, name: str) -> set[Origin]:
        """Parts of the model of this name, else those whose names end in it."""
        every = {origin for origins in self.origins.values() for origin in origins}
        whole = {origin for origin in every if origin.name == name}
        return whole or {origin for origin in every if origin.is_called(name)}
