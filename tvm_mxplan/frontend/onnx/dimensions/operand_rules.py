"""Places in a node's operands whose dimensions its operator demands to be equal, or no larger than others.

    Conv(x [n, c, ...], w [o, 2, ...])        c is 2, or twice the groups
    LSTM(x [t, n, f], ..., h [1, 2, u])       n is 2
    GatherElements(x [n, 4], i [2, 3])        n is at least 2

Kernels trust these: one that a call breaks would read, or write, what is not the tensor's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..node import Node
from .dims import Dim, product

Place = tuple[int, int] | int
"""An operand and an axis of it, or a number."""

Shapes = Sequence[Sequence[Dim] | None]
Rule = Callable[[Node, Shapes], Iterable[Sequence[Place]]]


def _has(shapes: Shapes, *operands: int) -> bool:
    """Whether these operands are there, and their shapes known."""
    return all(at < len(shapes) and shapes[at] is not None for at in operands)


def _present(shapes: Shapes, *places: tuple[int, int]) -> list[tuple[int, int]]:
    """Those places whose operands are there and have the axis."""
    return [
        (operand, axis)
        for operand, axis in places
        if _has(shapes, operand) and axis < len(shapes[operand])  # type: ignore[arg-type]
    ]


def _convolution(weights: int, transposed: bool = False) -> Rule:
    def places(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
        if not _has(shapes, 0, weights) or not _present(shapes, (0, 1), (weights, 1)):
            return
        groups = int(node.attribute("group", 1))
        each = shapes[weights][1]  # type: ignore[index]
        if transposed:
            yield [(0, 1), (weights, 0)]
        elif groups == 1:
            yield [(0, 1), (weights, 1)]
        elif isinstance(each, int):
            yield [(0, 1), int(product([each, groups]))]
        if not transposed:
            yield _present(shapes, (weights, 0), (2 if weights == 1 else 8, 0))

    return places


def _channels(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    """Vectors as long as the second axis."""
    if node.op_type == "GroupNormalization" and node.opset < 21:
        return
    yield _present(shapes, (0, 1), *((operand, 0) for operand in range(1, len(shapes))))


def _by_channel(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    """Scales and zero points along an axis, unless one is for all."""
    if not _has(shapes, 0, 1) or node.attribute("block_size", 0) or len(shapes[1]) != 1:  # type: ignore[arg-type]
        return
    rank = len(shapes[0])  # type: ignore[arg-type]
    axis = int(node.attribute("axis", 1)) if rank > 1 else 0
    if shapes[1] != [1] and -rank <= axis < rank:
        yield _present(shapes, (0, axis % rank), (1, 0), (2, 0))


def _last_axes(_node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    """Scale and shift broadcast to the last axes."""
    if not _has(shapes, 0):
        return
    rank = len(shapes[0])  # type: ignore[arg-type]
    for operand in range(1, len(shapes)):
        own = shapes[operand] or ()
        for back in range(1, min(rank, len(own)) + 1):
            if isinstance(own[-back], int) and own[-back] != 1:
                yield [(0, rank - back), (operand, len(own) - back)]


def _recurrent(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    if not _has(shapes, 0) or len(shapes[0]) != 3:  # type: ignore[arg-type]
        return
    samples, states = (0, 0) if node.attribute("layout", 0) else (1, 1)
    yield _present(shapes, (0, samples), (4, 0), (5, states), (6, states))
    yield _present(shapes, (0, 2), (1, 2))
    yield _present(shapes, (2, 2), (5, 2), (6, 2))


def _samples(_node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    yield _present(shapes, (0, 0), (1, 0))


def _regions(_node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    yield _present(shapes, (1, 0), (2, 0))


def _reversed(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    yield _present(shapes, (0, int(node.attribute("batch_axis", 1))), (1, 0))


def _batch(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    for axis in range(int(node.attribute("batch_dims", 0))):
        yield _present(shapes, (0, axis), (1, axis))


def _einsum(node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    """Axes of one letter; 1 broadcasts."""
    words = node.text("equation").replace(" ", "").split("->")[0].split(",")
    if any("." in word for word in words):
        return
    for letter in sorted(set("".join(words))):
        found = [
            (operand, axis)
            for operand, word in enumerate(words)
            for axis, other in enumerate(word)
            if other == letter
        ]
        yield [(o, a) for o, a in _present(shapes, *found) if shapes[o][a] != 1]  # type: ignore[index]


def _updates(_node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    if _has(shapes, 1, 2):
        for axis in range(len(shapes[1])):  # type: ignore[arg-type]
            yield _present(shapes, (1, axis), (2, axis))


def _parts(_node: Node, shapes: Shapes) -> Iterable[Sequence[Place]]:
    """A part for each row of coordinates, with the axes that they say nothing of."""
    if not _has(shapes, 0, 1, 2) or not shapes[1] or not isinstance(shapes[1][-1], int):
        return
    outer, depth = len(shapes[1]) - 1, shapes[1][-1]
    for axis in range(len(shapes[2])):  # type: ignore[arg-type]
        yield _present(shapes, (1, axis) if axis < outer else (0, depth + axis - outer), (2, axis))


EQUAL: dict[str, Rule] = {
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _convolution(1, transposed=True),
    "QuantizeLinear": _by_channel,
    "DequantizeLinear": _by_channel,
    "BatchNormalization": _channels,
    "InstanceNormalization": _channels,
    "GroupNormalization": _channels,
    "LayerNormalization": _last_axes,
    "RMSNormalization": _last_axes,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "GridSample": _samples,
    "RoiAlign": _regions,
    "ReverseSequence": _reversed,
    "GatherND": _batch,
    "Einsum": _einsum,
    "ScatterElements": _updates,
    "ScatterND": _parts,
}
"""Lists of places that are equal, by operators."""

INDEXED = ("GatherElements", "ScatterElements")
"""Operators whose indices (operand 1) reach no further along other axes than the data (operand 0)."""
