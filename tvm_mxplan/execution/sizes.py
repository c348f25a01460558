"""Sizes of named dimensions: the combinations that a model is made ready for, and inputs of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.program.dim_text import dim_from_text
from ..core.program.dims import LARGEST_EXTENT, evaluate, symbols_of
from ..errors import InvalidInputError, UnsupportedError
from .signature import ANY, Port, Signature, is_symbol


def combinations(signature: Signature, sizes: Mapping[str, int | Iterable[int]]) -> list[dict[str, int]]:
    """Every combination of the sizes given for each named dimension.

    Raises
    ------
    InvalidInputError : a name that no dimension has, a dimension without sizes, or a size out of bounds.
    """
    names = list(dict.fromkeys(dim for port in signature.inputs for dim in port.shape if is_symbol(dim)))
    known = ", ".join(map(str, names)) or "none"
    for name in sizes:
        if name not in names:
            raise InvalidInputError(f"no dimension {name!r}; the named dimensions are {known}")
    choices = []
    for name in names:
        if name not in sizes:
            raise InvalidInputError(f"dimension {name!r} has no sizes; the named dimensions are {known}")
        given = sizes[name]
        numbers = list(given) if isinstance(given, Iterable) else [given]
        low, high = signature.bounds.get(name, (1, LARGEST_EXTENT))
        for number in numbers:
            is_whole = isinstance(number, int | np.integer)
            if not is_whole or not low <= number <= high:
                is_open = high == LARGEST_EXTENT and not (is_whole and number > high)
                wanted = f"{low} or more" if is_open else f"{low} to {high}"
                raise InvalidInputError(f"dimension {name!r} cannot be {number!r}; expected {wanted}")
        choices.append([int(number) for number in dict.fromkeys(numbers)])
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*choices)]


def zeros(signature: Signature, sizes: Mapping[str, int]) -> list[np.ndarray]:
    """Inputs of zeros at these sizes."""
    return [_zeros(port, sizes) for port in signature.inputs]


def _zeros(port: Port, sizes: Mapping[str, int]) -> np.ndarray:
    if port.shape == ANY or not port.dtype:
        raise UnsupportedError(f"input {port}: its shape is not known, so no call can be made up for it")
    try:
        dtype = np.dtype(port.dtype)
    except TypeError:
        raise UnsupportedError(f"input {port}: made-up values are of numpy's types; call the model") from None
    return np.zeros([_extent(port, dim, sizes) for dim in port.shape], dtype)


def _extent(port: Port, text: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(text, int):
        return text
    dim = dim_from_text(text)
    if dim is None or not symbols_of(dim) <= sizes.keys():
        raise UnsupportedError(
            f"input {port}: {text} does not follow from {', '.join(sizes)}; call the model"
        )
    return evaluate(dim, sizes)
