"""Sequences and optionals: lists of values, whose lengths and positions are known while importing."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...node import Emitter, Node, NotTaken
from ...values import Value
from ..table import converts


@converts("SequenceConstruct")
def _construct(emitter: Emitter, node: Node) -> Value:
    return list(node.inputs)


@converts("SequenceEmpty")
def _empty(emitter: Emitter, node: Node) -> Value:
    return []


@converts("SequenceLength")
def _length(emitter: Emitter, node: Node) -> Value:
    return np.asarray(len(_sequence(node)), "int64")


@converts("SequenceAt")
def _at(emitter: Emitter, node: Node) -> Value:
    values = _sequence(node)
    return values[_position(node, 1, len(values) - 1)]


@converts("SequenceErase")
def _erase(emitter: Emitter, node: Node) -> Value:
    values = _sequence(node)
    at = _position(node, 1, len(values) - 1)
    return [value for other, value in enumerate(values) if other != at]


@converts("SequenceInsert")
def _insert(emitter: Emitter, node: Node) -> Value:
    values = _sequence(node)
    at = _position(node, 2, len(values))
    return [*values[:at], node.input(1), *values[at:]]


@converts("ConcatFromSequence")
def _concat(emitter: Emitter, node: Node) -> Value:
    tensors = [emitter.tensor(value) for value in _sequence(node)]
    axis = node.attributes["axis"]
    if node.attribute("new_axis", 0):
        return emitter.emit(relax.op.stack(tensors, axis))
    return emitter.emit(relax.op.concat(tensors, axis))


@converts("SplitToSequence")
def _split(emitter: Emitter, node: Node) -> Value:
    """Parts of one element each, of a size, or of sizes that stand in a row."""
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    axis = node.attribute("axis", 0) % len(dims)
    extent, sizes = dims[axis], node.known(1)
    if not isinstance(extent, int):
        raise NotTaken
    if sizes is not None and sizes.ndim:
        stated = np.cumsum(sizes)
    else:
        size = 1 if sizes is None else int(sizes)
        stated = np.arange(size, extent + size, size)
    ends = [min(int(end), extent) for end in stated]
    starts = [0, *ends[:-1]]
    parts = [
        emitter.emit(relax.op.strided_slice(data, [axis], [start], [end]))
        for start, end in zip(starts, ends, strict=True)
    ]
    if sizes is None and not node.attribute("keepdims", 1):
        return [emitter.emit(relax.op.squeeze(part, [axis])) for part in parts]
    return parts


@converts("Optional")
def _optional(emitter: Emitter, node: Node) -> Value:
    return node.input(0)


@converts("OptionalHasElement")
def _has_element(emitter: Emitter, node: Node) -> Value:
    return np.asarray(node.input(0) is not None)


@converts("OptionalGetElement")
def _get_element(emitter: Emitter, node: Node) -> Value:
    if node.input(0) is None:
        raise NotTaken
    return node.input(0)


def _sequence(node: Node) -> list[Value]:
    values = node.input(0)
    if not isinstance(values, list):
        raise NotTaken
    return values


def _position(node: Node, operand: int, last: int) -> int:
    """A position of a sequence from its start; the end where it is left out."""
    stated = node.known(operand)
    if stated is None:
        return last
    at = int(stated.reshape(-1)[0])
    return at + last + (1 if operand == 1 else 0) if at < 0 else at
