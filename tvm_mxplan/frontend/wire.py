"""Protobuf's wire format, as far as ONNX files need it: a message is a row of (tag, payload).

A tag is a field's number and a type; a payload of type 2 has its length before it.  A field that stands twice
holds the last number, or a message put together from both.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, BYTES, _FIXED32 = 0, 1, 2, 5


class Message:
    """The fields of a message; ValueError for bytes that are none."""

    def __init__(self, data: memoryview) -> None:
        self._fields = list(fields(data))
        self._payloads: dict[int, list[memoryview]] = {}
        for tag, _, payload in self._fields:
            self._payloads.setdefault(tag, []).append(payload)

    def all(self, number: int) -> list[memoryview]:
        """Payloads of a field that may stand several times."""
        return self._payloads.get(number << 3 | BYTES, [])

    def text(self, number: int) -> str:
        rows = self.all(number)
        return bytes(rows[-1]).decode() if rows else ""

    def texts(self, number: int) -> list[str]:
        return [bytes(row).decode() for row in self.all(number)]

    def number(self, number: int) -> int:
        rows = self._payloads.get(number << 3 | _VARINT)
        return _varint(rows[-1], 0)[0] if rows else 0

    def merged(self, number: int) -> memoryview:
        """A field that is a message."""
        rows = self.all(number)
        return rows[0] if len(rows) == 1 else memoryview(b"".join(rows))

    def without(self, *numbers: int) -> bytes:
        """The message as it stands, but for some fields that are texts or messages."""
        left_out = {number << 3 | BYTES for number in numbers}
        return b"".join(whole for tag, whole, _ in self._fields if tag not in left_out)


def fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Tag, whole bytes and payload of each field."""
    at, end = 0, len(message)
    while at < end:
        start = at
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == BYTES:
            length, at = _varint(message, at)
        elif kind == _VARINT:
            length = _varint(message, at)[1] - at
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if length > end - at:
            raise ValueError("a field that ends past its message")
        yield tag, message[start : at + length], message[at : at + length]
        at += length


def varint_bytes(value: int) -> bytes:
    """A number as it stands in a message."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise ValueError("a number that ends past its message")
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 64, 7):
        if at >= len(data):
            raise ValueError("a number that ends past its message")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than 64 bits")
