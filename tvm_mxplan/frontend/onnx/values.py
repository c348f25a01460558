"""ONNX values while a model is imported: known, expressions over dimensions, or tensors of Relax.

    numpy array      the value itself is known
    Symbols          integers of which some depend on named dimensions: what shape arithmetic gives
    relax.Expr       a tensor that is computed when the model runs
    list             a sequence, whose length is known
    None             an input or output left out

Converters (``converters``) take and give these.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from tvm import relax

from .dimensions.dims import Dim, simplified


@dataclass(frozen=True)
class Symbols:
    """A tensor of numbers and expressions over named dimensions.

    Attributes
    ----------
    elements : array of Python objects, each an ``int`` or an expression of type int64; where the type is a
        floating one, also quotients of those (``ratios.py``).
    dtype : the element type that the model gives it.
    """

    elements: np.ndarray
    dtype: str = "int64"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.elements.shape

    def list(self) -> list[Dim]:
        """The elements, row by row."""
        return list(self.elements.reshape(-1))


Value: TypeAlias = np.ndarray | Symbols | relax.Expr | list | None
"""See the file's text; a list holds values."""


class Scope(ChainMap[str, Value]):
    """Values by name, as a graph sees them; an enclosing graph's stand behind its own and are not copied."""

    def __or__(self, more: Mapping[str, Value]) -> Scope:  # type: ignore[override]
        return Scope(dict(more), *self.maps)


def array_of(elements: Sequence[Dim], shape: Sequence[int]) -> np.ndarray:
    """An array of objects of that shape, filled with the elements row by row."""
    array = np.empty(len(elements), dtype=object)
    array[:] = [element if hasattr(element, "under") else simplified(element) for element in elements]
    return array.reshape(tuple(shape))


def value_of(elements: Sequence[Dim], shape: Sequence[int], dtype: str = "int64") -> np.ndarray | Symbols:
    """A known array where all elements are numbers, else symbols."""
    array = array_of(elements, shape)
    if all(isinstance(element, int) for element in array.reshape(-1)):
        return array.astype(dtype)
    return Symbols(array, dtype)


def is_float(value: Value) -> bool:
    """Whether a value is a known array or symbols of a floating type."""
    return isinstance(value, np.ndarray | Symbols) and np.dtype(value.dtype).kind == "f"


def as_symbols(value: Value) -> Symbols | None:
    """A known integer array, or symbols of integers, as symbols; None for all else."""
    if isinstance(value, Symbols):
        return None if is_float(value) else value
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
        elements = [int(element) for element in value.reshape(-1)]
        return Symbols(array_of(elements, value.shape), str(value.dtype))
    return None


def dtype_of(value: Value) -> str:
    """The element type of a tensor, as numpy names it."""
    if isinstance(value, Symbols):
        return value.dtype
    if isinstance(value, np.ndarray):
        return str(value.dtype)
    return str(value.ty.dtype)  # type: ignore[union-attr]


def rank_of(value: Value) -> int | None:
    """The rank of a tensor; None where it is not known."""
    if isinstance(value, np.ndarray | Symbols):
        return len(value.shape)
    rank = int(value.ty.ndim)  # type: ignore[union-attr]
    return None if rank < 0 else rank


def has_shape(value: Value) -> bool:
    """Whether the dimensions of a tensor are known."""
    if isinstance(value, np.ndarray | Symbols):
        return True
    return isinstance(value.ty.shape, relax.ShapeExpr)  # type: ignore[union-attr]


def shape_of(value: Value) -> list[Dim] | None:
    """The dimensions of a tensor, numbers or expressions; None where they are not known."""
    if isinstance(value, np.ndarray | Symbols):
        return list(value.shape)
    if not has_shape(value):
        return None
    return [simplified(dim) for dim in value.ty.shape.values]  # type: ignore[union-attr]
