"""Tensors with others in the place of slices of them, as assignments to slices are written in graphs.

One is an operator (``operators/put.py``), which libraries do in place.  Several one after the other along an
axis, of which nothing else reads those between, are one join of what was put and of what is left:

    y = zeros(2, 3)                    concat(a, b, c) along axis 1
    y[:, 0] = a
    y[:, 1] = b
    y[:, 2] = c
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax

from ....operators.put import put as operator
from ....operators.put import put_by_kernel
from ...onnx.dimensions.dims import Dim, expression, same, simplified
from ..node import Emitter, Node, dims_of, dtype_of
from .movement import bound_within, from_the_front
from .table import converts

# Joins between are made and let go, each with one operand more than the last: their number is bounded.
_MOST_PIECES = 512


@dataclass(frozen=True)
class Put:
    """A tensor in the place of elements ``begin``, ``begin + step``, ... before ``end`` of another's axis."""

    source: relax.Expr
    part: relax.Expr
    axis: int
    begin: Dim
    end: Dim
    step: int


@dataclass(frozen=True)
class Piece:
    """Elements ``[begin, end)`` of a joined axis, which stand from ``offset`` on in a tensor."""

    begin: int
    end: int
    tensor: relax.Expr
    offset: int

    def cut(self, begin: int, end: int) -> Piece:
        """The piece within bounds; empty where it lies beyond them."""
        low, high = max(begin, self.begin), min(end, self.end)
        return Piece(low, max(low, high), self.tensor, self.offset + low - self.begin)


@converts("slice_scatter.default")
def put_in_slice(emitter: Emitter, node: Node) -> relax.Expr:
    """The tensor with others in the place of a slice of it."""
    source, axis = node["self"], node["dim"] % len(dims_of(node["self"]))
    extent, step = dims_of(source)[axis], node["step"]
    begin, end = bound_within(node["start"], extent, 0), bound_within(node["end"], extent, extent)
    part = emitter.cast(node["src"], dtype_of(source))
    if isinstance(begin, int) and begin == 0 and same(end, extent) and step == 1:
        return part
    return _put(emitter, node, Put(source, part, axis, begin, end, step))


@converts("select_scatter.default")
def put_at_index(emitter: Emitter, node: Node) -> relax.Expr:
    """The tensor with another in the place of one of its parts along an axis."""
    source, dims = node["self"], dims_of(node["self"])
    axis = node["dim"] % len(dims)
    place = from_the_front(node["index"], dims[axis])
    part = emitter.emit(relax.op.expand_dims(emitter.cast(node["src"], dtype_of(source)), axis))
    return _put(emitter, node, Put(source, part, axis, place, simplified(expression(place) + 1), 1))


def _put(emitter: Emitter, node: Node, put: Put) -> relax.Expr:
    """The result of a put: a join where it follows others that nothing else reads."""
    begin, end, extent = put.begin, put.end, dims_of(put.source)[put.axis]
    if not (isinstance(begin, int) and isinstance(end, int) and isinstance(extent, int)):
        return _alone(emitter, put)
    if put.step != 1 or begin > end:
        return _alone(emitter, put)
    axis, before = emitter.made.get((_put, put.source), (put.axis, []))
    follows = before and axis == put.axis and "self" in node.sole and len(before) < _MOST_PIECES
    pieces = before if follows else [Piece(0, extent, put.source, 0)]
    cut = [piece.cut(*bounds) for bounds in ((0, begin), (end, extent)) for piece in pieces]
    whole = sorted([*cut, Piece(begin, end, put.part, 0)], key=lambda piece: piece.begin)
    whole = [piece for piece in whole if piece.begin < piece.end]
    result = _joined(emitter, put.axis, whole) if follows else _alone(emitter, put)
    emitter.made[_put, result] = put.axis, whole
    return result


def _joined(emitter: Emitter, axis: int, pieces: list[Piece]) -> relax.Expr:
    parts = []
    for piece in pieces:
        low, high = piece.offset, piece.offset + piece.end - piece.begin
        all_of_it = low == 0 and high == dims_of(piece.tensor)[axis]
        part = relax.op.strided_slice(piece.tensor, [axis], [low], [high], [1])
        parts.append(piece.tensor if all_of_it else emitter.emit(part))
    return emitter.emit(relax.op.concat(parts, axis)) if len(parts) > 1 else parts[0]


def _alone(emitter: Emitter, put: Put) -> relax.Expr:
    """The operator where its bounds are numbers, else a kernel."""
    begin, end = put.begin, put.end
    if isinstance(begin, int) and isinstance(end, int):
        return emitter.emit(operator(put.source, put.part, put.axis, begin, put.step))
    bounds = expression(begin), expression(end)
    return emitter.emit(put_by_kernel(emitter.builder, put.source, put.part, put.axis, bounds, put.step))
