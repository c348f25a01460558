"""Gives a window's padding in numbers where a node says that the result has the size of the data by strides.

    auto_pad SAME_UPPER, stride 1, kernel 4     pads 1 before, 2 after, whatever the image
    ... stride 2, height n                      a Pad by max((ceil(n / 2) - 1) * 2 + 4 - n, 0) before

so that what converts windows needs no rule for it, and sizes may be named dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import onnx
from tvm import tirx

from .dimensions.dims import Dim, expression, simplified
from .node import Emitter, Node
from .values import Value, dtype_of, shape_of, value_of

_SAME = ("SAME_UPPER", "SAME_LOWER")
_FILLED = {"Conv": 0.0, "MaxPool": -np.inf}
"""Operators whose data may be padded beforehand, and with what number."""
_POOLS = ("MaxPool", "AveragePool", "LpPool")
"""Operators that TVM pads by other rules, even where sizes are numbers."""


@dataclass(frozen=True)
class _Axis:
    extent: Dim
    reach: int
    stride: int


def explicit(emitter: Emitter, node: Node, pad: Callable[[Node], Value]) -> Node:
    """The node without ``auto_pad`` where that depends on sizes, or is a pool's; others as they are.

    Parameters
    ----------
    pad : converts a node of the operator Pad.
    """
    if node.domain or node.op_type == "ConvTranspose" or node.text("auto_pad") not in _SAME:
        return node
    axes = _axes(node)
    fixed = axes is not None and all(isinstance(axis.extent, int) for axis in axes)
    if axes is None or (fixed and node.op_type not in _POOLS):
        return node
    upper = node.text("auto_pad") == "SAME_UPPER"
    totals = [_total(axis) for axis in axes]
    before = [_half(total, up=not upper) for total in totals]
    after = [
        simplified(expression(total) - expression(low)) for total, low in zip(totals, before, strict=True)
    ]
    # The result has the size of the data by strides, rounded up, whatever ``ceil_mode``.
    ruled = ("auto_pad", "ceil_mode")
    attributes = {name: value for name, value in node.attributes.items() if name not in ruled}
    if all(isinstance(amount, int) for amount in [*before, *after]):
        return _with(node, node.inputs, attributes | {"pads": [*before, *after]})
    filled = _FILLED.get(node.op_type)
    if filled is None:
        return node
    rest = [0] * (len(shape_of(node.input(0)) or []) - len(axes))
    amounts = value_of([*rest, *before, *rest, *after], (2 * (len(rest) + len(axes)),))
    number = np.asarray(filled, dtype_of(node.input(0)))
    proto = onnx.helper.make_node("Pad", ["data", "pads", "number"], [node.outputs[0]], name=node.name)
    padding = replace(
        node,
        op_type="Pad",
        inputs=[node.input(0), amounts, number],
        attributes={},
        opset=max(node.opset, 13),
        proto=proto,
    )
    return _with(node, [pad(padding), *node.inputs[1:]], attributes | {"pads": [0] * (2 * len(axes))})


def _with(node: Node, inputs: object, attributes: dict) -> Node:
    return replace(node, inputs=list(inputs), attributes=attributes)  # type: ignore[call-overload]


def _axes(node: Node) -> list[_Axis] | None:
    data = node.input(0)
    dims = None if data is None or isinstance(data, list) else shape_of(data)
    kernel = node.attribute("kernel_shape")
    if kernel is None and len(node.inputs) > 1:
        kernel = (shape_of(node.input(1)) or [])[2:]
    if dims is None or not kernel or not all(isinstance(size, int) for size in kernel):
        return None
    rank = len(kernel)
    strides, dilations = (node.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    return [
        _Axis(extent, (size - 1) * dilation + 1, stride)
        for extent, size, stride, dilation in zip(dims[-rank:], kernel, strides, dilations, strict=True)
    ]


def _total(axis: _Axis) -> Dim:
    """The padding of both ends together."""
    if axis.stride == 1:
        return axis.reach - 1
    extent = expression(axis.extent)
    steps = tirx.floordiv(extent + (axis.stride - 1), tirx.const(axis.stride, "int64")) - 1
    return simplified(tirx.max(steps * axis.stride + axis.reach - extent, tirx.const(0, "int64")))


def _half(total: Dim, *, up: bool) -> Dim:
    if isinstance(total, int):
        return (total + up) // 2
    return simplified(tirx.floordiv(total + int(up), tirx.const(2, "int64")))
