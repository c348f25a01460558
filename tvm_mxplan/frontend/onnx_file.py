"""An ONNX file read in place: the model without its weights' bytes, and where in the file those stand.

A file of half a gigabyte is then parsed in a millisecond and its weights are hashed where they are mapped.
Only what this needs of protobuf's wire format is here: a message is a row of (tag, payload), a payload of
type 2 has its length before it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GRAPH, _INITIALIZER, _RAW_DATA = (field << 3 | _BYTES for field in (7, 5, 9))
"""Tags in ModelProto, GraphProto and TensorProto."""


def split_file(path: str | os.PathLike[str]) -> tuple[onnx.ModelProto, list[memoryview]] | None:
    """The model with empty ``raw_data`` in its initializers, and that data, one view for each.

    None for a file that is missing, no ONNX model, or keeps data in other files: the usual reader
    knows what to say or do.
    """
    import onnx

    try:
        with Path(path).open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        model, raw = onnx.ModelProto(), list[memoryview]()
        model.ParseFromString(_without_raw_data(data, (_GRAPH, _INITIALIZER), raw))
    except Exception:  # whatever is wrong with it, the usual reader will say
        return None
    external = any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer)
    return None if external or len(raw) != len(model.graph.initializer) else (model, raw)


def _without_raw_data(message: memoryview, path: tuple[int, ...], raw: list[memoryview]) -> bytes:
    """The message with ``raw_data`` left out of the messages at ``path``; appends it to ``raw``."""
    kept = bytearray()
    found = memoryview(b"")
    for tag, whole, payload in _fields(message):
        if path and tag == path[0]:
            inner = _without_raw_data(payload, path[1:], raw)
            kept += _varint_bytes(tag) + _varint_bytes(len(inner)) + inner
        elif not path and tag == _RAW_DATA:
            found = payload
        else:
            kept += whole
    if not path:
        raw.append(found)
    return bytes(kept)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Tag, whole bytes and payload of each field."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind == _VARINT:
            length = _varint(message, at)[1] - at
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if length > len(message) - at:
            raise ValueError("a field that ends past its message")
        yield tag, message[start : at + length], message[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number of more than 64 bits")


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
