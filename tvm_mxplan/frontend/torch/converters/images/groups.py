"""Convolutions of as many groups as a named size says, such as those whose filters are the batch's own.

    conv2d(x.reshape(1, b * c, h, w), filters.reshape(b * o, c, 3, 3), groups=b)

No library takes such a number of groups: the windows of each group stand in columns, which a batched product
multiplies by the group's filters.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from tvm import relax, tirx

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import expression, simplified
from ...node import Emitter, Node, dims_of


def convolved_by_groups(
    emitter: Emitter, node: Node, strides: list[int], padding: list[int], dilation: list[int]
) -> relax.Expr:
    """The convolution without its bias.

    Raises
    ------
    UnsupportedError : a transposed convolution, or one whose channels or filters vary.
    """
    groups, weight = node["groups"], node["weight"]
    count, *window = dims_of(weight)[1:]
    images = dims_of(node["input"])[0]
    results, *extents = node.result.shape[1:]
    filters = _share(results, groups)
    known = [count, *window, filters]
    if node["transposed"] or not all(isinstance(number, int) for number in known):
        raise UnsupportedError(
            f"a number of groups that varies, {groups}, of a convolution that is transposed or whose filters "
            "vary; export the model with a fixed batch"
        )
    taps = math.prod(window)
    widths = [0, 0, 0, 0, *(width for pad in padding for width in (pad, pad))]
    padded = (
        emitter.emit(relax.op.nn.pad(node["input"], widths, "constant", 0.0))
        if any(padding)
        else node["input"]
    )
    axes = [axis + 2 for axis in range(len(window))]
    pixels: Any = math.prod(extents[1:], start=extents[0])
    columns = []
    for place in itertools.product(*map(range, window)):
        begin = [at * step for at, step in zip(place, dilation, strict=True)]
        end = [
            first + (extent - 1) * stride + 1
            for first, extent, stride in zip(begin, extents, strides, strict=True)
        ]
        seen = emitter.emit(relax.op.strided_slice(padded, axes, begin, end, strides))
        columns.append(emitter.reshaped(seen, [images, groups, count, 1, pixels]))
    unfolded = columns[0] if taps == 1 else emitter.emit(relax.op.concat(columns, 3))
    unfolded = emitter.reshaped(unfolded, [images, groups, count * taps, pixels])
    matrices = emitter.reshaped(weight, [1, groups, filters, count * taps])
    return emitter.reshaped(emitter.emit(relax.op.matmul(matrices, unfolded)), node.result.shape)


def _share(results: Any, groups: Any) -> Any:
    """Results of one group."""
    return simplified(tirx.floordiv(expression(results), expression(groups)))
