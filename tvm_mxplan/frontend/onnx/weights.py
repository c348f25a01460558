"""Weights of an ONNX model in memory once: read from their file to where Relax's constants stand.

A model's message, its arrays and the constants of Relax would be three copies of each weight.  So external
data stays in its file until the graph is imported (``left_in_files``), is read into memory that is aligned as
TVM's own (``array_of``), and becomes a constant without a copy (``constants``).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from ...errors import InvalidInputError
from ..aligned import aligned_bytes
from .checks.check_tensors import Stored, nbytes_of, stored, tensors_of
from .names import shown

_LEFT = 1 << 16
"""Bytes from which on a weight stays in its file: less may be a shape, which the checks look at."""
_SLICE = 1 << 28


def load_small(model: onnx.ModelProto, folder: Path) -> None:
    """Read what is in other files into the model, all but large initializers of its graph."""
    own = len(model.graph.initializer)
    for at, tensor in enumerate(tensors_of(model.graph)):  # the graph's own initializers come first
        if tensor.data_location != onnx.TensorProto.EXTERNAL or (at < own and left_in_files(tensor)):
            continue
        onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def left_in_files(tensor: onnx.TensorProto) -> bool:
    """Whether :func:`array_of` reads the tensor's file, and not the model."""
    return (
        tensor.data_location == onnx.TensorProto.EXTERNAL
        and nbytes_of(tensor, tensor.name) >= _LEFT
        and nbytes_of(tensor, tensor.name) == _nbytes(tensor)
    )


def array_of(tensor: onnx.TensorProto, folder: Path | None) -> np.ndarray:
    """The numbers of an initializer; ``folder`` is the model's, whose files have been checked.

    Raises
    ------
    InvalidInputError : its file is gone, or shorter than it was.
    """
    if folder is None or tensor.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    place = stored(tensor, shown(tensor.name))
    data = aligned_bytes(_nbytes(tensor))
    try:
        read = _read(folder, place, data.data)
    except OSError as error:
        raise InvalidInputError(
            f"{folder / place.location}: the data of initializer {shown(tensor.name)} cannot be read "
            f"({error.strerror}); expected a file, no link, in the model's own folder"
        ) from error
    if read < data.nbytes:
        raise InvalidInputError(
            f"{folder / place.location}: is truncated: expected {data.nbytes:,} bytes of initializer "
            f"{shown(tensor.name)} from byte {place.offset:,} on, got {read:,}; copy it again"
        )
    return data.view(_dtype(tensor)).reshape(tuple(tensor.dims))


def _read(folder: Path, place: Stored, data: memoryview) -> int:
    """Fill ``data`` from a file; returns the bytes that were there."""
    descriptor = os.open(folder / place.location, os.O_RDONLY | os.O_NOFOLLOW)
    read = 0
    with open(descriptor, "rb", buffering=0) as file:
        file.seek(place.offset)
        while read < len(data) and (some := file.readinto(data[read : read + _SLICE])):
            read += some
    return read


def _dtype(tensor: onnx.TensorProto) -> np.dtype:
    return onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)


def _nbytes(tensor: onnx.TensorProto) -> int:
    """Bytes of the tensor as an array, which are more than those in the file where several share a byte."""
    return int(np.prod(tensor.dims, dtype=np.int64)) * _dtype(tensor).itemsize
