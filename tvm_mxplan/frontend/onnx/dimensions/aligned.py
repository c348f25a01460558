"""States the axes along which versions before 7 broadcast, which later ones do by the last axes alone.

Add<broadcast = 1, axis = 1>(x [n, 3, h, w], b [3])     b becomes [3, 1, 1]
"""

from __future__ import annotations

from dataclasses import replace

from ....errors import InvalidInputError
from ..node import Emitter, Node
from ..values import rank_of

_OPERATORS = {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"}


def aligned(emitter: Emitter, node: Node) -> Node:
    """The node with its second operand in a shape that broadcasts by the last axes."""
    if node.domain or node.opset >= 7 or node.op_type not in _OPERATORS or len(node.inputs) != 2:
        return node
    start = node.attribute("axis")
    if start is None or not node.attribute("broadcast", 0):
        return node
    rank, own = rank_of(node.input(0)), rank_of(node.input(1))
    if rank is None or own is None:
        return node
    first = start + rank if start < 0 else start
    behind = rank - first - own
    if not 0 <= first <= rank or behind < 0:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: {own} axes from axis {start} of a tensor of {rank}; expected "
            "no more than it has"
        )
    if not behind or not own:
        return node
    second = emitter.reshaped(node.input(1), [*emitter.shape(node.input(1)), *[1] * behind])
    return replace(node, inputs=[node.input(0), second])
