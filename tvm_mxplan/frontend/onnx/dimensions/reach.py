"""Demands of images with open sizes that windows over them do not leave results of less than no elements.

    Conv(x [1, 3, h, w], w [8, 3, 3, 3])        h and w are at least 2: results of 0 elements are some
    ... with padding 1 on all sides             no demand

Results would be asked of memory in sizes below 0 otherwise, whose errors name neither node nor size.
"""

from __future__ import annotations

from collections.abc import Iterator

from tvm import tirx

from ..node import Emitter, Node
from ..values import shape_of
from .dims import Dim, expression, not_negative, simplified
from .restate import Demand, met_aside, text_of

_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
"""Convolutions, and the place of their weights."""
_POOLS = ("MaxPool", "AveragePool", "LpPool")


def check(emitter: Emitter, node: Node) -> None:
    """Emits the checks of a node that has windows, and whose padding is stated in numbers."""
    if node.domain or node.op_type not in (*_WEIGHTS, *_POOLS):
        return
    met_aside(emitter, *_demands(node, emitter.importer.called(node)))


def _demands(node: Node, called: str) -> Iterator[Demand]:
    dims, sizes = shape_of(node.input(0)), _sizes(node)
    if dims is None or len(dims) != len(sizes) + 2 or node.text("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        return
    rank = len(sizes)
    strides, dilations = (node.attribute(name) or [1] * rank for name in ("strides", "dilations"))
    padding = list(node.attribute("pads") or [0] * (2 * rank)) if node.text("auto_pad") != "VALID" else []
    for at, (size, extent) in enumerate(zip(sizes, dims[2:], strict=True)):
        if isinstance(extent, int) or not isinstance(size, int):
            continue
        added = sum(padding[at::rank])
        reach = (size - 1) * dilations[at] + 1
        short = reach - added - strides[at]  # an image of as many elements has a result of none
        if short <= 1 or not_negative(simplified(extent - short)):
            continue
        words = (
            f"{called}: axis {2 + at} has {text_of(extent)} elements and {added} of padding, and the window "
            f"is over {reach}; expected no fewer; mend the input's shape"
        )
        yield Demand(tirx.GE(expression(extent), expression(short)), words)


def _sizes(node: Node) -> list[Dim]:
    """The extents of the window."""
    stated = node.attribute("kernel_shape")
    weights = None if stated else node.input(_WEIGHTS.get(node.op_type, len(node.inputs)))
    return list(stated or []) if weights is None else (shape_of(weights) or [])[2:]
