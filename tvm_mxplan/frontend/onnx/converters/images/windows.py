"""Windows over images, where TVM's importer lacks a result or an attribute.

MaxPool with the places of what it finds, LpPool, MaxUnpool, ConvTranspose to a stated shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import relax, te, tirx

from .....errors import InvalidInputError, UnsupportedError
from ... import stock
from ...dimensions.dims import Dim, expression, product, same, simplified, variables
from ...dimensions.restate import row_of, text_of
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ...way_out import way_out
from ..numbers import constant, least
from ..padding import padded
from ..table import converts


@dataclass(frozen=True)
class _Window:
    """One axis of a window."""

    size: int
    stride: int
    dilation: int
    before: int
    result: int


@converts("MaxPool", first_opset=8)
def _max_pool(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """With the places of the largest elements in the flattened operand, the first one of equals."""
    if len(node.outputs) < 2 or not node.outputs[1]:
        raise NotTaken
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    windows = _windows(node, dims)
    values = emitter.builder.emit_te(_pooled(windows, places=False), data, primfunc_name_hint="max_pool")
    places = emitter.builder.emit_te(_pooled(windows, places=True), data, primfunc_name_hint="max_places")
    if node.attribute("storage_order", 0):
        places = _column_major(emitter, places, dims)
    return values, places


def _windows(node: Node, dims: Sequence[Dim]) -> list[_Window]:
    """The windows of a pool, by its attributes and the extents of the image."""
    sizes = node.attributes["kernel_shape"]
    rank = len(sizes)
    strides = node.attribute("strides", [1] * rank)
    dilations = node.attribute("dilations", [1] * rank)
    pads = node.attribute("pads", [0] * (2 * rank))
    rule = node.text("auto_pad", "NOTSET")
    found = []
    for axis in range(rank):
        extent = dims[2 + axis]
        if not isinstance(extent, int):
            raise NotTaken
        reach = (sizes[axis] - 1) * dilations[axis] + 1
        stride, before, after = strides[axis], pads[axis], pads[axis + rank]
        if rule in ("SAME_UPPER", "SAME_LOWER"):
            result = -(-extent // stride)
            total = max(0, (result - 1) * stride + reach - extent)
            before = total // 2 if rule == "SAME_UPPER" else total - total // 2
        else:
            if rule == "VALID":
                before = after = 0
            free = extent + before + after - reach
            result = (-(-free // stride) if node.attribute("ceil_mode", 0) else free // stride) + 1
            # A window that would start behind the image and its padding is none.
            result -= (result - 1) * stride >= extent + before
        found.append(_Window(sizes[axis], stride, dilations[axis], before, result))
    return found


def _pooled(windows: Sequence[_Window], *, places: bool) -> object:
    """A kernel that finds the largest elements, or their places."""

    def kernel(tensor: te.Tensor) -> te.Tensor:
        dtype = tensor.dtype
        start = tirx.const(least(str(dtype)), dtype)
        loops = [te.reduce_axis((0, window.size), f"k{axis}") for axis, window in enumerate(windows)]
        shape = [*tensor.shape[:2], *[window.result for window in windows]]

        def read(index: Sequence[tirx.Var]) -> tuple[tirx.Expr, tirx.Expr]:
            place, inside = _place(index, windows, loops, tensor.shape)
            flat = tirx.const(0, "int64")
            for at, extent in zip(place, tensor.shape, strict=True):
                flat = flat * extent + at
            return tirx.if_then_else(inside, tensor(*place), start), flat

        if not places:
            reduced = te.comm_reducer(lambda a, b: tirx.max(a, b), lambda _: start, name="largest")
            return te.compute(shape, lambda *index: reduced(read(index)[0], axis=loops), "largest")

        def first(left: tuple, right: tuple) -> tuple:
            keep = tirx.Or(left[1] > right[1], tirx.And(left[1].equal(right[1]), left[0] >= 0))
            return tirx.Select(keep, left[0], right[0]), tirx.Select(keep, left[1], right[1])

        reducer = te.comm_reducer(first, lambda *_: (tirx.const(-1, "int64"), start), name="first_largest")

        def element(*index: tirx.Var) -> tuple:
            value, flat = read(index)
            return reducer((flat, value), axis=loops)

        found = te.compute(shape, element, "places")
        return te.compute(shape, lambda *index: found[0](*index), "place")

    return kernel


@converts("LpPool")
def _norm_pool(emitter: Emitter, node: Node) -> Value:
    """Norms of windows, which zeros fill where they reach beyond the image and its padding."""
    data = emitter.tensor(node.input(0))
    dims, dtype = emitter.shape(data), dtype_of(data)
    windows = _windows(node, dims)
    power = float(node.attribute("p", 2))
    if power <= 0:
        raise InvalidInputError(f"{emitter.importer.called(node)}: p={power:g}; expected a norm's, above 0")
    inner = "float64" if dtype == "float64" else "float32"

    def kernel(tensor: te.Tensor) -> te.Tensor:
        loops = [te.reduce_axis((0, window.size), f"k{axis}") for axis, window in enumerate(windows)]
        shape = [*tensor.shape[:2], *[window.result for window in windows]]

        def element(*index: tirx.Var) -> tirx.Expr:
            place, inside = _place(index, windows, loops, tensor.shape)
            size = tirx.abs(tensor(*place).astype(inner))
            raised = {1.0: size, 2.0: size * size}.get(power)
            raised = tirx.power(size, tirx.const(power, inner)) if raised is None else raised
            return te.sum(tirx.if_then_else(inside, raised, tirx.const(0, inner)), axis=loops)

        summed = te.compute(shape, element, "summed")
        root = tirx.const(1 / power, inner)
        return te.compute(
            shape,
            lambda *index: (summed(*index) if power == 1 else tirx.power(summed(*index), root)).astype(dtype),
            "norm_pool",
        )

    return emitter.builder.emit_te(kernel, data, primfunc_name_hint="norm_pool")


def _place(
    index: Sequence[tirx.Var], windows: Sequence[_Window], loops: Sequence[tirx.IterVar], dims: Sequence[Dim]
) -> tuple[list[tirx.Expr], tirx.Expr]:
    """The element that a window reads, the nearest one of the image, and whether it is inside."""
    place, inside = list(index[:2]), tirx.const(True, "bool")
    for window, loop, at, extent in zip(windows, loops, index[2:], dims[2:], strict=True):
        here = at * window.stride + loop.var * window.dilation - window.before
        inside = tirx.And(inside, tirx.And(here >= 0, here < extent))
        place.append(tirx.max(tirx.min(here, extent - 1), tirx.const(0, "int64")))
    return place, inside


def _column_major(emitter: Emitter, places: relax.Expr, dims: Sequence[Dim]) -> relax.Expr:
    """Places of a flattened image whose axes are stored in the reverse order."""
    image = product(dims[2:])

    def kernel(tensor: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            flat = tensor(*index)
            outer, inner = tirx.floordiv(flat, image), tirx.floormod(flat, image)
            coordinates = []
            for extent in reversed(dims[2:]):
                coordinates.append(tirx.floormod(inner, extent))
                inner = tirx.floordiv(inner, extent)
            turned = tirx.const(0, "int64")
            for at, extent in zip(coordinates, reversed(dims[2:]), strict=True):
                turned = turned * extent + at
            return outer * image + turned

        return te.compute(tensor.shape, element, "turned")

    return emitter.builder.emit_te(kernel, places, primfunc_name_hint="column_major")


@converts("MaxUnpool")
def _max_unpool(emitter: Emitter, node: Node) -> Value:
    """Elements at places in the flattened result, 0 elsewhere."""
    data, places = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dims, sizes = emitter.shape(data), node.attributes["kernel_shape"]
    rank = len(sizes)
    strides, pads = node.attribute("strides", [1] * rank), node.attribute("pads", [0] * (2 * rank))
    image = [
        simplified((expression(extent) - 1) * stride + size - before - after)
        for extent, stride, size, before, after in zip(
            dims[2:], strides, sizes, pads[:rank], pads[rank:], strict=True
        )
    ]
    result = [*dims[:2], *image]
    stated = node.input(2)
    if stated is not None:
        wanted = emitter.dims(stated)
        # Places in a larger image are its own for some, for ONNX's reference those of the one made above.
        if len(wanted) != len(result) or not all(map(same, wanted[2:], image)):
            raise UnsupportedError(
                f"{emitter.importer.called(node)}: output_shape {row_of(wanted)} where kernel, strides and "
                f"pads give {row_of(result)}, in which of the two the indices count is not defined; expected "
                "the latter; pad the result instead"
            )
    dtype = dtype_of(data)
    zeros = relax.op.full(relax.ShapeExpr([expression(product(result))]), constant(0, dtype), dtype)
    rows = [emitter.tensor(emitter.reshaped(value, [product(dims)])) for value in (places, data)]
    flat = emitter.emit(relax.op.scatter_elements(emitter.emit(zeros), *rows, axis=0))
    return emitter.reshaped(flat, result)


def _check_weights(emitter: Emitter, node: Node, dims: Sequence[Dim], weights: Sequence[Dim]) -> None:
    """Say which sizes TVM's kernels take as numbers only."""
    grouped = int(node.attribute("group", 1)) > 1
    needed = [*weights[2:], *([dims[1], weights[0]] if grouped else [])]
    if all(isinstance(dim, int) for dim in needed):
        return
    found = {one.name: None for dim in needed for one in variables(dim)}
    advice = way_out(list(found), emitter.importer.source.inputs)
    raise UnsupportedError(
        f"{emitter.importer.called(node)}: weights of {row_of(weights)} for channels of {text_of(dims[1])}; "
        f"expected {'weights and channels' if grouped else 'a window'} of known sizes"
        + (f"; {advice}" if advice else "")
    )


@converts("ConvTranspose")
def _transposed_convolution(emitter: Emitter, node: Node) -> Value:
    """To a stated shape: the padding that gives it, behind the whole result where that is not known."""
    wanted = node.attribute("output_shape")
    dims, weights = emitter.shape(node.input(0)), emitter.shape(node.input(1))
    _check_weights(emitter, node, dims, weights)
    if wanted is None:
        raise NotTaken
    rank = len(dims) - 2
    if not all(isinstance(dim, int) for dim in weights[2:]):
        raise NotTaken
    strides = node.attribute("strides", [1] * rank)
    dilations = node.attribute("dilations", [1] * rank)
    extra = list(node.attribute("output_padding", [0] * rank))
    before, after = [], []
    for axis, (extent, size, stride) in enumerate(zip(dims[2:], weights[2:], strides, strict=True)):
        reach = (size - 1) * dilations[axis] + 1
        whole = (expression(extent) - 1) * stride + extra[axis] + reach
        total = simplified(whole - wanted[axis - rank])
        cut = simplified(tirx.max(expression(total), tirx.const(0, "int64")))
        upper = node.text("auto_pad", "NOTSET") == "SAME_UPPER"
        before.append(simplified(tirx.floordiv(expression(cut) + (not upper), tirx.const(2, "int64"))))
        after.append(simplified(expression(total) - before[-1]))
    attributes = {
        name: value for name, value in node.attributes.items() if name not in ("output_shape", "auto_pad")
    }
    if all(isinstance(amount, int) for amount in [*before, *after]):
        extra = [more + max(0, -high) for more, high in zip(extra, after, strict=True)]
        after = [max(0, high) for high in after]
        attributes |= {"pads": [*before, *after], "output_padding": extra}
        (result,) = stock.converted(emitter, replace(node, attributes=attributes))
        return result
    attributes |= {"pads": [0] * (2 * rank)}
    (result,) = stock.converted(emitter, replace(node, inputs=node.inputs[:2], attributes=attributes))
    amounts = [simplified(0 - expression(amount)) for amount in [0, 0, *before, 0, 0, *after]]
    result = padded(emitter, result, amounts)
    bias = node.input(2)
    if bias is None:
        return result
    column = emitter.tensor(emitter.reshaped(bias, [1, *emitter.shape(bias), *[1] * rank]))
    return emitter.emit(relax.op.add(result, column))
