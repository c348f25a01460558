"""Initializers of an ONNX model: their types, shapes and bytes, and the files that hold these.

External data stands in files beside the model, never above its folder, and each tensor's bytes are all there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from ....errors import InvalidInputError
from ..names import shown

if TYPE_CHECKING:
    import onnx

LARGEST = 2**63 - 1
_PER_BYTE = {"UINT4": 2, "INT4": 2, "FLOAT4E2M1": 2, "UINT2": 4, "INT2": 4}
"""Elements in one byte, of the types that have more than one."""


@dataclass(frozen=True)
class Stored:
    """The place of external data; ``length`` is None where the model does not state it."""

    location: str
    offset: int
    length: int | None


def stored(tensor: onnx.TensorProto, what: str) -> Stored:
    """Reads the place of a tensor's data; InvalidInputError for what is no number."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    offset, length = (_number(what, entries, key) for key in ("offset", "length"))
    return Stored(entries.get("location", ""), offset, length if "length" in entries else None)


def check_files(model: onnx.ModelProto, path: Path) -> None:
    """Whether the files of external data are where they may be, and long enough; nothing is read."""
    import onnx

    for tensor in tensors_of(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        what = f"{path}: initializer {shown(tensor.name)}"
        place = stored(tensor, what)
        if not place.location or not _inside(place.location):
            raise InvalidInputError(
                f"{what}: its external data is in {shown(place.location)}; "
                "expected a file in the model's own folder"
            )
        file = path.parent / place.location
        if not file.is_file():
            raise InvalidInputError(f"{what}: its external data is missing; expected the file {file}")
        expected = nbytes_of(tensor, what)
        if place.length is not None and place.length != expected:
            raise InvalidInputError(
                f"{what}: expected {expected:,} bytes of external data for its shape {list(tensor.dims)}, "
                f"and the model states {place.length:,}"
            )
        there = max(0, file.stat().st_size - place.offset)
        if there < expected:
            raise InvalidInputError(
                f"{what}: {file} is truncated: expected {expected:,} bytes from byte {place.offset:,} on, "
                f"got {there:,}; copy it again"
            )


def check_initializers(graph: onnx.GraphProto, source: str, files_checked: bool) -> None:
    """Whether each initializer has as many numbers as its shape says, in the model or in checked files."""
    import onnx

    for tensor in graph.initializer:
        what = f"{source}: initializer {shown(tensor.name)}"
        expected = nbytes_of(tensor, what)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            if files_checked:
                continue
            raise InvalidInputError(
                f"{what}: its data is in another file; give the model's path, or read it with onnx.load"
            )
        shape = list(tensor.dims)
        if tensor.HasField("raw_data"):
            if len(tensor.raw_data) != expected:
                raise InvalidInputError(
                    f"{what}: expected {expected:,} bytes for its shape {shape}, got {len(tensor.raw_data):,}"
                )
            continue
        wanted, got = _stored_elements(tensor, math.prod(shape)), _elements(tensor)
        if got != wanted:
            raise InvalidInputError(f"{what}: expected {wanted:,} numbers for its shape {shape}, got {got:,}")


def nbytes_of(tensor: onnx.TensorProto, what: str) -> int:
    """Bytes of a tensor's numbers; InvalidInputError where its type or shape is none."""
    import onnx

    types = onnx.TensorProto.DataType
    if tensor.data_type not in types.values() or tensor.data_type == onnx.TensorProto.UNDEFINED:
        raise InvalidInputError(f"{what}: element type {tensor.data_type} is none that ONNX has")
    if any(dim < 0 for dim in tensor.dims):
        raise InvalidInputError(f"{what}: expected extents of 0 or more, got the shape {list(tensor.dims)}")
    name, count = types.Name(tensor.data_type), math.prod(tensor.dims)
    if name == "STRING":
        return count
    if name in _PER_BYTE:
        nbytes = -(-count // _PER_BYTE[name])
    else:
        nbytes = count * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    if nbytes > LARGEST:
        raise InvalidInputError(f"{what}: its shape {list(tensor.dims)} takes more than 2^63 bytes")
    return nbytes


def tensors_of(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """All tensors that may stand in other files: initializers, and those in attributes."""
    todo = [graph]
    while todo:
        one = todo.pop()
        yield from one.initializer
        for node in one.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                todo += [attribute.g] if attribute.HasField("g") else []
                todo += attribute.graphs


def _inside(location: str) -> bool:
    """True for a relative path that never leaves its folder, as any system reads it."""
    for path in (PurePosixPath(location), PureWindowsPath(location)):
        if path.is_absolute() or path.drive or path.root or ".." in path.parts:
            return False
    return "\0" not in location


def _number(what: str, entries: dict[str, str], key: str) -> int:
    text = entries.get(key, "0")
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise InvalidInputError(
            f"{what}: expected a number of bytes as {key} of its external data, got {shown(text)}"
        )
    return int(text)


def _stored_elements(tensor: onnx.TensorProto, count: int) -> int:
    """Counts the entries that hold ``count`` numbers: complex ones take two, packed ones share one."""
    import onnx

    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    return 2 * count if name.startswith("COMPLEX") else -(-count // _PER_BYTE.get(name, 1))


def _elements(tensor: onnx.TensorProto) -> int:
    fields = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")
    return max(len(getattr(tensor, name)) for name in fields)
