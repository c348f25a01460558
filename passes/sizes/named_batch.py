"""A named batch, and the sizes that plans are made for.

    n from 1 to 48        1, 2, 4, 8, 16, 32, 48, and what the option batch_sizes adds

A call of 5 rows runs with 8, three of them zeros, where rows stay apart; where they meet, only calls of the
sizes themselves run.

Left to others: the functions of each size (specialize_sizes), the one that chooses (dispatch_sizes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, tirx

from tvm_mxplan.core.program.dims import LARGEST_EXTENT
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from .rows_apart import why_rows_meet

MAIN = "main"
SIZE = "mxplan.batch_size"
"""Attribute of a function that is ``main`` for one size of the batch."""


@dataclass(frozen=True)
class NamedBatch:
    """The batch as the function that callers call states it.

    Attributes
    ----------
    function : it, with the batch as a symbol.
    symbol : that one.
    sizes : that functions are made for, ascending.
    meet : where rows meet, and why; '' where they stay apart.
    """

    function: relax.Function
    symbol: tirx.Var
    sizes: tuple[int, ...]
    meet: str

    def name(self, size: int) -> str:
        """The function for one size."""
        return f"{MAIN}_{self.symbol.name}_{size}"

    def __str__(self) -> str:
        told = f"{self.symbol.name}: plans for {', '.join(map(str, self.sizes))}"
        return f"{told}; no other sizes run, since rows meet at {self.meet}" if self.meet else told


def sizes_of(low: int, high: int, further: Sequence[int] = ()) -> tuple[int, ...]:
    """Powers of two from ``low`` up to ``high``, ``high`` itself, and further ones, ascending."""
    powers = (1 << exponent for exponent in range(high.bit_length()))
    return tuple(sorted({size for size in (*powers, *further) if max(low, 1) <= size <= high} | {high}))


def named_batch(
    mod: tvm.IRModule, bounds: Mapping[str, tuple[int, int]], further: Sequence[int] = ()
) -> NamedBatch | None:
    """The named batch of ``main``; None where all shapes are numbers.

    Raises
    ------
    UnsupportedError : several names.
    InvalidInputError : no bound for the one, or further sizes beyond it.
    """
    function = mod[MAIN]
    symbols = list(relax.analysis.free_symbolic_vars(function))
    symbols += [one for one in relax.analysis.defined_symbolic_vars(function) if _of_inputs(function, one)]
    named = {str(one.name): one for one in symbols}
    if not named:
        if further:
            raise InvalidInputError("option batch_sizes: no dimension of the model has a name")
        return None
    if len(named) > 1:
        names = ", ".join(sorted(named))
        raise UnsupportedError(
            f"dimensions {names}: execution plans are for numbers, and one named dimension at most is made "
            "of sizes; give the others numbers (shapes)"
        )
    ((name, symbol),) = named.items()
    low, high = bounds.get(name, (0, LARGEST_EXTENT))
    if high == LARGEST_EXTENT:
        raise InvalidInputError(
            f"dimension {name}: execution plans are for numbers; say what it can be "
            f'(bounds={{"{name}": (1, 32)}}, or tvmc compile --bounds), or give it a number (shapes)'
        )
    beyond = [size for size in further if not max(low, 1) <= size <= high]
    if beyond or high < 1:
        raise InvalidInputError(
            f"option batch_sizes={beyond or list(further)}: dimension {name} is {low} to {high}, as bounds "
            "say"
        )
    return NamedBatch(function, symbol, sizes_of(low, high, further), why_rows_meet(function, symbol))


def _of_inputs(function: relax.Function, symbol: tirx.Var) -> bool:
    shapes = [getattr(param.ty, "shape", None) for param in function.params]
    dims = [dim for shape in shapes if isinstance(shape, relax.ShapeExpr) for dim in shape.values]
    return any(one.same_as(symbol) for dim in dims for one in tirx.analysis.undefined_vars(dim, []))


def entries(mod: tvm.IRModule) -> list[tvm.ir.GlobalVar]:
    """The functions that calls begin with: ``main``, or one for each size of its batch."""
    sized = [gvar for gvar, function in mod.functions.items() if is_sized(function)]
    return sorted(sized, key=lambda gvar: int(mod[gvar].attrs[SIZE])) or [mod.get_global_var(MAIN)]


def is_sized(function: object) -> bool:
    """Whether a function is one size's."""
    return isinstance(function, relax.Function) and bool(function.attrs) and SIZE in function.attrs
