"""Bounds of a Relax function's symbols, as attributes by which TVM knows them.

    tir_var_lower_bound {"n": 2}, tir_var_upper_bound {"n": 8}        2 <= n <= 8

TVM's passes and ours (``passes/storage``: memory for the largest) rely on them, so calls are held to
them (``signature.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from ...core.program.dims import LARGEST_EXTENT
from ...errors import InvalidInputError
from ...execution.signature import is_symbol, signature_of
from ...passes.storage.relax_sizes import UPPER_BOUND

LOWER_BOUND = "tir_var_lower_bound"


def bounds_of(function: relax.Function) -> dict[str, tuple[int, int]]:
    """The bounds that a Relax function states for the symbols of its parameters.

    Raises
    ------
    InvalidInputError : bounds between which nothing lies.
    """
    lower, upper = (_stated(function, attribute) for attribute in (LOWER_BOUND, UPPER_BOUND))
    dims = {dim for port in signature_of(function).inputs for dim in port.shape}
    bounds = {
        name: (lower.get(name, 0), min(upper.get(name, LARGEST_EXTENT), LARGEST_EXTENT))
        for name in (lower | upper)
        if name in dims
    }
    for name, (low, high) in bounds.items():
        if not 0 <= low <= high:
            raise InvalidInputError(
                f"Relax function: symbol {name!r}: expected bounds from 0 on with something between, got "
                f"{LOWER_BOUND} {low} and {UPPER_BOUND} {high}; mend the function's attributes"
            )
    return bounds


def _stated(function: relax.Function, attribute: str) -> dict[str, int]:
    values = function.attrs.get(attribute) if function.attrs else None
    return {str(name): int(value) for name, value in (values or {}).items()}


def check_names(function: relax.Function, bounds: Mapping[str, tuple[int, int]]) -> None:
    """Say which bounds are of no dimension.

    Raises
    ------
    InvalidInputError : bounds of a name that no parameter's dimension has.
    """
    ports = signature_of(function).inputs
    names = list(dict.fromkeys(dim for port in ports for dim in port.shape if is_symbol(dim)))
    for name in bounds:
        if name not in names:
            known = ", ".join(map(str, names)) or "none, all are numbers"
            raise InvalidInputError(f"no open dimension {name!r}; the open dimensions are: {known}")
