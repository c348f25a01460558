"""Col2Im: what windows over an image hold, summed where they lie; sizes may be the call's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax, te, tirx

from ...dimensions.dims import Dim, divided, expression, product, same, simplified
from ...node import Emitter, Node, NotTaken
from ...values import Value
from ..table import converts


@dataclass(frozen=True)
class _Axis:
    """An axis of the image, with the windows over it."""

    extent: tirx.Expr
    block: tirx.Expr
    stride: int
    dilation: int
    before: int
    after: int

    def windows(self) -> tirx.Expr:
        """As many windows as there are."""
        free = self.extent + self.before + self.after - self.dilation * (self.block - 1) - 1
        return expression(simplified(tirx.floordiv(free, tirx.const(self.stride, "int64")) + 1))

    def windows_side_by_side(self) -> bool:
        """Whether each element of the image lies in one window."""
        alone = (self.dilation, self.before, self.after) == (1, 0, 0) and same(self.block, self.stride)
        return alone and same(simplified(self.windows() * self.block), simplified(self.extent))


def _side_by_side(emitter: Emitter, data: relax.Expr, outer: Sequence[Dim], axes: Sequence[_Axis]) -> Value:
    """Windows that meet nowhere only take their places."""
    rank, axis = len(axes), len(outer)
    apart = [*outer, *(one.block for one in axes), *(one.windows() for one in axes)]
    order = [*range(axis), *(place for at in range(axis, axis + rank) for place in (at + rank, at))]
    placed = relax.op.permute_dims(emitter.tensor(emitter.reshaped(data, apart)), order)
    return emitter.reshaped(emitter.emit(placed), [*outer, *(one.extent for one in axes)])


@converts("Col2Im", first_opset=18)
def _col2im(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    extents, blocks = (emitter.dims(node.input(index)) for index in (1, 2))
    rank = len(extents)
    if len(dims) != 3 or rank != len(blocks) or not rank:
        raise NotTaken
    strides = node.attribute("strides", [1] * rank)
    dilations = node.attribute("dilations", [1] * rank)
    pads = node.attribute("pads", [0] * (2 * rank))
    axes = [
        _Axis(expression(extent), expression(block), stride, dilation, before, after)
        for extent, block, stride, dilation, before, after in zip(
            extents, blocks, strides, dilations, pads[:rank], pads[rank:], strict=True
        )
    ]
    channels = divided(dims[1], product(blocks))
    if all(axis.windows_side_by_side() for axis in axes):
        return _side_by_side(emitter, data, [dims[0], channels], axes)
    return emitter.builder.emit_te(
        lambda tensor: _kernel(tensor, channels, axes), data, primfunc_name_hint="col2im"
    )


def _kernel(data: te.Tensor, channels: Dim, axes: Sequence[_Axis]) -> te.Tensor:
    loops = [te.reduce_axis((0, axis.block), f"k{at}") for at, axis in enumerate(axes)]
    zero = tirx.const(0, data.dtype)

    def element(image: tirx.Var, channel: tirx.Var, *places: tirx.Var) -> tirx.Expr:
        row, column, inside = channel, tirx.const(0, "int64"), tirx.const(True, "bool")
        for place, axis, loop in zip(places, axes, loops, strict=True):
            from_start = place + axis.before - loop.var * axis.dilation
            window = tirx.floordiv(from_start, tirx.const(axis.stride, "int64"))
            count = axis.windows()
            meets = tirx.floormod(from_start, tirx.const(axis.stride, "int64")).equal(tirx.const(0, "int64"))
            inside = tirx.And(inside, tirx.And(meets, tirx.And(window >= 0, window < count)))
            row = row * axis.block + loop.var
            column = column * count + window
        return te.sum(tirx.if_then_else(inside, data(image, row, column), zero), axis=loops)

    shape = [data.shape[0], expression(channels), *(axis.extent for axis in axes)]
    return te.compute(shape, element, "col2im")
