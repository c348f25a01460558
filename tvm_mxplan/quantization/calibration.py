"""Arrays of a file as samples: what a model is fed, call by call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx

from ..errors import InvalidInputError

Samples: TypeAlias = Sequence[Mapping[str, np.ndarray]]
"""The inputs of each call, by name."""


def inputs_of(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """The inputs of a model that are no initializers, by name."""
    held = {tensor.name for tensor in model.graph.initializer}
    return {one.name: one for one in model.graph.input if one.name not in held}


def samples_of(model: onnx.ModelProto, arrays: Mapping[str, np.ndarray]) -> Samples:
    """Cut arrays along their first axis into calls of the model.

    An input (4, 3, 224, 224) takes four rows of its array in each call, one whose first dimension is open a
    single row, and one without dimensions an element.

    Raises
    ------
    InvalidInputError : arrays that are missing, left over, empty, or of another shape or type.
    """
    inputs = inputs_of(model)
    expected = ", ".join(inputs)
    for name in arrays:
        if name not in inputs:
            raise InvalidInputError(f"data: no input {name!r}; the model's inputs are {expected}")
    for name in inputs:
        if name not in arrays:
            raise InvalidInputError(f"data: no array {name!r}; expected {expected}")
    cut = {name: _cut(inputs[name], array) for name, array in arrays.items()}
    counts = {name: len(rows) for name, rows in cut.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise InvalidInputError(f"data: expected as many samples in each array, got {told}")
    return [dict(zip(cut, rows, strict=True)) for rows in zip(*cut.values(), strict=True)]


def _cut(port: onnx.ValueInfoProto, array: np.ndarray) -> list[np.ndarray]:
    tensor = port.type.tensor_type
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    wanted = [str(dim or "any") for dim in dims]
    if array.dtype != dtype:
        raise InvalidInputError(f"data: {port.name}: expected {dtype}, got {array.dtype}")
    rank = max(len(dims), 1)
    alike = array.ndim == rank and all(
        dim in (None, extent) for dim, extent in zip(dims[1:], array.shape[1:], strict=True)
    )
    if not alike:
        shape = f"(samples{''.join(f', {dim}' for dim in wanted[1:])})"
        raise InvalidInputError(f"data: {port.name}: expected shape {shape}, got {tuple(array.shape)}")
    if not array.size:
        raise InvalidInputError(f"data: {port.name}: is empty; expected at least one sample")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidInputError(f"data: {port.name}: holds numbers that are not finite")
    rows = (dims[0] if dims else None) or 1
    if len(array) % rows:
        raise InvalidInputError(
            f"data: {port.name}: expected a multiple of {rows} rows, which a call takes, got {len(array)}"
        )
    if not dims:
        return list(array)
    return [array[at : at + rows] for at in range(0, len(array), rows)]
