"""DeformConv: pixels gathered at places that the model computes, and one matrix product with the weights.

    samples   [n, groups, channels * kernel, pixels]       by a kernel: bilinear, zero outside of the image
    result    [groups, results, channels * kernel] @ samples

Of images with two axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax, te, tirx

from ...dimensions.dims import Dim, expression, product
from ...node import Emitter, Node, NotTaken
from ...values import Value
from ..table import converts


@dataclass(frozen=True)
class _Windows:
    """Windows over an image of two axes."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    before: tuple[int, int]
    offset_groups: int


@converts("DeformConv", first_opset=19)
def _deformable(emitter: Emitter, node: Node) -> Value:
    data, weights, offsets = (emitter.tensor(node.input(index)) for index in (0, 1, 2))
    bias, mask = node.input(3), node.input(4)
    dims, filters, places = (emitter.shape(value) for value in (data, weights, offsets))
    ranks = {len(shape) for shape in (dims, filters, places)}
    if ranks != {4} or not all(isinstance(dim, int) for dim in [dims[1], *filters]):
        raise NotTaken
    pair = [1, 1]
    windows = _Windows(
        (int(filters[2]), int(filters[3])),
        tuple(node.attribute("strides", pair)),
        tuple(node.attribute("dilations", pair)),
        tuple(node.attribute("pads", [0] * 4)[:2]),
        node.attribute("offset_group", 1),
    )
    operands = [data, offsets] if mask is None else [data, offsets, emitter.tensor(mask)]
    samples = emitter.builder.emit_te(
        lambda *tensors: _samples(tensors, windows), *operands, primfunc_name_hint="deformed"
    )
    groups, pixels = node.attribute("group", 1), places[2:]
    depth = product([filters[1], *windows.kernel])
    grouped = emitter.reshaped(samples, [dims[0], groups, depth, product(pixels)])
    rows = emitter.reshaped(weights, [1, groups, filters[0] // groups, depth])
    made = emitter.emit(relax.op.matmul(emitter.tensor(rows), emitter.tensor(grouped)))
    result = emitter.reshaped(made, [dims[0], filters[0], *pixels])
    if bias is None:
        return result
    column = emitter.reshaped(bias, [1, filters[0], 1, 1])
    return emitter.emit(relax.op.add(emitter.tensor(result), emitter.tensor(column)))


def _samples(operands: Sequence[te.Tensor], windows: _Windows) -> te.Tensor:
    """[n, channels, kernel rows, kernel columns, rows, columns]."""
    data, offsets, *masks = operands
    images, channels, *extents = data.shape
    high, wide = windows.kernel
    per_group = int(channels) // windows.offset_groups

    def pixel(image: Dim, channel: Dim, row: tirx.Expr, column: tirx.Expr) -> tirx.Expr:
        """A pixel of the image, zero outside."""
        inside = tirx.const(True, "bool")
        near = []
        for place, extent in zip((row, column), extents, strict=True):
            inside = tirx.And(inside, tirx.And(place >= 0, place < extent))
            near.append(tirx.max(tirx.min(place, extent - 1), tirx.const(0, "int64")))
        return tirx.if_then_else(inside, data(image, channel, *near), tirx.const(0, data.dtype))

    def sample(
        image: tirx.Var, channel: tirx.Var, i: tirx.Var, j: tirx.Var, row: tirx.Var, column: tirx.Var
    ) -> tirx.Expr:
        at = tirx.floordiv(channel, tirx.const(per_group, "int64")) * (high * wide) + i * wide + j
        exact, lower = [], []
        for axis, (window, place) in enumerate(((i, row), (j, column))):
            start = place * windows.strides[axis] + window * windows.dilations[axis] - windows.before[axis]
            exact.append(tirx.Cast(data.dtype, start) + offsets(image, at * 2 + axis, row, column))
            lower.append(tirx.floor(exact[axis]))
        found = tirx.const(0, data.dtype)
        for down in (0, 1):
            for along in (0, 1):
                share = tirx.const(1, data.dtype)
                for axis, further in enumerate((down, along)):
                    part = exact[axis] - lower[axis]
                    share = share * (part if further else 1 - part)
                corner = [
                    tirx.Cast("int64", one) + further
                    for one, further in zip(lower, (down, along), strict=True)
                ]
                found = found + share * pixel(image, channel, *corner)
        return found * masks[0](image, at, row, column) if masks else found

    shape = [images, channels, expression(high), expression(wide), *offsets.shape[2:]]
    return te.compute(shape, sample, "deformed")
