"""Layouts of tensors at run time: numpy arrays and TVM's tensors, with what is known of their layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from ..byoc import registry
from ..core.layout.layout_arrays import pack, unpack
from ..core.layout.layout_registry import STANDARD
from ..errors import InvalidInputError
from .names import fitting_layout, layout_of


@dataclass(frozen=True)
class PhysicalTensor:
    """A tensor in a physical layout.

    Attributes
    ----------
    data : numpy array or TVM tensor of the physical shape.
    layout : name of the layout.
    shape : logical shape.
    """

    data: Any
    layout: str
    shape: tuple[int, ...]


def to_blocked(x: Any, layout: str) -> PhysicalTensor:
    """See :func:`tvm_mxplan.op.to_blocked`."""
    if isinstance(x, PhysicalTensor):
        parsed = layout_of(layout, len(x.shape))
        if parsed == layout_of(x.layout, len(x.shape)):
            return x
        x = to_plain(x, None, None)
    array = _array(x)
    parsed = layout_of(layout, array.ndim)
    converted = _by_library(array, array.shape, STANDARD, layout)
    data = pack(array, parsed) if converted is None else converted
    return PhysicalTensor(_like(x, data), layout, array.shape)


def to_plain(x: Any, layout: str | None, shape: Sequence[int] | None) -> Any:
    """See :func:`tvm_mxplan.op.to_plain`."""
    if isinstance(x, PhysicalTensor):
        x, layout, shape = x.data, x.layout, x.shape
    if layout is None or shape is None:
        raise InvalidInputError("to_plain: a bare tensor does not say its layout; give layout and shape")
    array = _array(x)
    parsed = fitting_layout(layout, shape, array.shape)
    converted = _by_library(array, tuple(shape), layout, STANDARD)
    return _like(x, unpack(array, parsed, shape) if converted is None else converted)


def _by_library(array: np.ndarray, shape: tuple[int, ...], source: str, target: str) -> np.ndarray | None:
    """The array converted by the first library that announces both layouts; None where none does."""
    if array.dtype != np.float32 or not array.size:
        return None
    for backend in registry.planners():
        layouts = backend.layouts()
        if {source, target} <= {STANDARD, *(record.name for record in layouts)}:
            converted: np.ndarray = layouts.convert(np.ascontiguousarray(array), shape, source, target)
            return converted
    return None


def _array(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, tvm.runtime.Tensor) else np.asarray(x)


def _like(x: Any, array: np.ndarray) -> Any:
    return tvm.runtime.tensor(array) if isinstance(x, tvm.runtime.Tensor) else array
