"""An ONNX file read in place: the model without its weights' bytes, and where in the file those stand.

A file of half a gigabyte is then taken apart in milliseconds, without onnx, and its weights are hashed where
they are mapped.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .wire import BYTES, Message, fields, varint_bytes

if TYPE_CHECKING:
    import onnx

_GRAPH, _INITIALIZER, _RAW_DATA = (field << 3 | BYTES for field in (7, 5, 9))
"""Tags in ModelProto, GraphProto and TensorProto."""
_DATA_LOCATION, _EXTERNAL = 14, 1

_TENSORS_IN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {
        **dict.fromkeys((5, 10), "tensor"),
        **dict.fromkeys((6, 11), "graph"),
        **dict.fromkeys((22, 23), "sparse tensor"),
    },
    "function": {7: "node", 11: "attribute"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "training": {1: "graph", 2: "graph"},
    "tensor": {},
}
"""Fields of the messages that tensors stand in, by the numbers in onnx.proto."""


def split_file(path: str | os.PathLike[str]) -> tuple[bytes, list[memoryview]] | None:
    """The bytes of the model with no ``raw_data`` in its initializers, and that data, one view for each.

    None for a file that is missing, no message, has no graph, or keeps any tensor's data in other files: the
    usual reader knows what to say or do.
    """
    try:
        with Path(path).open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        skeleton, raw = _without_raw_data(data, (_GRAPH, _INITIALIZER))
        graph = Message(Message(memoryview(skeleton)).merged(_GRAPH >> 3))
        tensors = graph.all(_INITIALIZER >> 3)
        external = keeps_data_elsewhere(skeleton)
    except (OSError, ValueError):
        return None
    return None if external or len(raw) != len(tensors) else (skeleton, raw)


def keeps_data_elsewhere(model: bytes | memoryview, kind: str = "model") -> bool:
    """True if a tensor has its data in another file: an initializer, an attribute, in branches or functions.

    Raises
    ------
    ValueError : bytes that are no message.
    """
    message = Message(memoryview(model))
    if kind == "tensor":
        return message.number(_DATA_LOCATION) == _EXTERNAL
    return any(
        keeps_data_elsewhere(inner, of)
        for number, of in _TENSORS_IN[kind].items()
        for inner in message.all(number)
    )


def skeleton_of(model: onnx.ModelProto) -> bytes:
    """The same bytes of a model in memory, whose weights are not copied for it."""
    skeleton = type(model)()
    for _ in _copied(model, skeleton, "graph"):
        for tensors in _copied(model.graph, skeleton.graph, "initializer"):
            for tensor in tensors:
                for _ in _copied(tensor, skeleton.graph.initializer.add(), "raw_data"):
                    pass
    text: bytes = skeleton.SerializeToString(deterministic=True)
    return text


def _copied(source: Any, target: Any, left_out: str) -> Iterator[Any]:
    """Copy all fields of a message but one, and give that one if it is set."""
    for descriptor, value in source.ListFields():
        if descriptor.name == left_out:
            yield value
        elif descriptor.is_repeated:
            getattr(target, descriptor.name).extend(value)
        elif descriptor.message_type is not None:
            getattr(target, descriptor.name).CopyFrom(value)
        else:
            setattr(target, descriptor.name, value)


def _without_raw_data(message: memoryview, path: tuple[int, ...]) -> tuple[bytes, list[memoryview]]:
    """The message with ``raw_data`` left out of the messages at ``path``, and that of each of them."""
    kept, raw = bytearray(), list[memoryview]()
    found = memoryview(b"")
    for tag, whole, payload in fields(message):
        if path and tag == path[0]:
            inner, below = _without_raw_data(payload, path[1:])
            raw += below
            kept += varint_bytes(tag) + varint_bytes(len(inner)) + inner
        elif not path and tag == _RAW_DATA:
            found = payload
        else:
            kept += whole
    return bytes(kept), raw if path else [found]
