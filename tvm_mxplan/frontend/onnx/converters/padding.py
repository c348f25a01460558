"""Pad: every mode, negative padding, and padding that the model computes."""

from __future__ import annotations

import numpy as np
from tvm import relax, te, tirx

from ....errors import InvalidInputError, UnsupportedError
from ..dimensions.dims import Dim, compared, expression, simplified
from ..dimensions.restate import Demand, met_aside, text_of
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of, shape_of, value_of
from .numbers import constant
from .table import converts

_MODES = ("constant", "reflect", "edge", "wrap")


@converts("Pad")
def _pad(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    mode = node.text("mode", "constant")
    if mode not in _MODES:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: mode {mode!r}; expected one of {', '.join(_MODES)}"
        )
    if node.opset < 11:
        pads: Value = np.asarray(node.attribute("pads", node.attribute("paddings")), "int64")
        value: Value = np.asarray(node.attribute("value", 0.0), dtype_of(data))
        axes = list(range(len(dims)))
    else:
        pads, value = node.input(1), node.input(2)
        stated = node.input(3)
        axes = list(range(len(dims)))
        if isinstance(stated, relax.Expr):
            pads = _on_all_axes(emitter, emitter.tensor(pads), stated, len(dims))
        elif stated is not None:
            axes = [int(axis) % len(dims) for axis in emitter.dims(stated)]
    if isinstance(pads, relax.Expr):
        return _by_kernel(emitter, node, data, dims, axes, mode, value, pads)
    amounts = emitter.dims(pads)
    if len(amounts) != 2 * len(axes):
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: {len(amounts)} numbers of padding for {len(axes)} axes; "
            f"expected {2 * len(axes)}"
        )
    before, after = [0] * len(dims), [0] * len(dims)
    for at, axis in enumerate(axes):
        before[axis], after[axis] = amounts[at], amounts[at + len(axes)]
    if all(isinstance(amount, int) and amount == 0 for amount in [*before, *after]):
        return data
    _check(emitter, node, dims, before, after, mode)
    if mode == "constant" and all(isinstance(amount, int) for amount in [*before, *after]):
        number = _number(value, dtype_of(data))
        if number is not None:
            return _constant(emitter, data, dims, before, after, number)
    if mode != "constant":
        found = _by_constant_places(emitter, data, dims, before, after, mode)
        if found is not None:
            return found
    both = [*before, *after]
    tensor = emitter.tensor(value_of(both, (len(both),)))
    results = [
        simplified(expression(size) + low + high) for size, low, high in zip(dims, before, after, strict=True)
    ]
    return _padded(emitter, data, results, mode, value, tensor, list(range(len(dims))))


def _on_all_axes(emitter: Emitter, pads: relax.Expr, axes: relax.Expr, rank: int) -> relax.Expr:
    """Padding of all axes, from that of axes which the model computes."""
    length = shape_of(axes)
    if length is None or not isinstance(length[0], int) or shape_of(pads) != [2 * length[0]]:
        raise NotTaken
    count = length[0]

    def kernel(amounts: te.Tensor, axes: te.Tensor) -> te.Tensor:
        def amount(at: tirx.Var) -> tirx.Expr:
            axis, side = tirx.floormod(at, rank), tirx.floordiv(at, rank)
            found = tirx.const(0, "int64")
            for number in range(count):
                stated = axes[number].astype("int64")
                here = tirx.Or(stated.equal(axis), stated.equal(axis - rank))
                found = tirx.Select(here, amounts[side * count + number].astype("int64"), found)
            return found

        return te.compute((2 * rank,), amount, "amounts")

    return emitter.builder.emit_te(kernel, pads, axes, primfunc_name_hint="padding")


def _number(value: Value, dtype: str) -> float | None:
    """The number that is filled in, where it is known."""
    if dtype == "bool":
        return None
    if value is None:
        return 0.0
    number = value.reshape(-1)[0].item() if isinstance(value, np.ndarray) else None
    # TVM's padding takes a float: what is none goes to a kernel.
    return None if isinstance(number, int) and abs(number) > 2**53 else number


def _constant(
    emitter: Emitter, data: relax.Expr, dims: list[Dim], before: list, after: list, number: float
) -> relax.Expr:
    """Emits the constant padding that libraries run; negative amounts are cut off first."""
    cut = [axis for axis in range(len(dims)) if before[axis] < 0 or after[axis] < 0]
    if cut:
        begin = [expression(max(0, -before[axis])) for axis in cut]
        end = [expression(simplified(dims[axis] + min(0, after[axis]))) for axis in cut]
        ones = [expression(1)] * len(cut)
        data = emitter.emit(relax.op.strided_slice(data, cut, begin, end, ones, assume_inbound=True))
    widths = [max(0, amount) for pair in zip(before, after, strict=True) for amount in pair]
    if not any(widths):
        return data
    return emitter.emit(relax.op.nn.pad(data, widths, "constant", number))


def _by_constant_places(
    emitter: Emitter, data: relax.Expr, dims: list[Dim], before: list[Dim], after: list[Dim], mode: str
) -> relax.Expr | None:
    """Reads of constant places, axis by axis, which libraries run; None where sizes or amounts are open."""
    found: dict[int, np.ndarray] = {}
    for axis, (size, low, high) in enumerate(zip(dims, before, after, strict=True)):
        if isinstance(low, int) and isinstance(high, int) and low == 0 and high == 0:
            continue
        if not all(isinstance(number, int) for number in (size, low, high)) or size + low + high == 0:
            return None
        # Negative padding cuts elements off before anything is repeated.
        cut, kept = max(-low, 0), size - max(-low, 0) - max(-high, 0)
        found[axis] = _places(np.arange(-low - cut, size + high - cut), kept, mode) + cut
        found[axis] = found[axis].clip(0, size - 1)
    for axis, places in found.items():
        data = emitter.emit(relax.op.take(data, relax.const(places, "int64"), axis, mode="fast"))
    return data


def _places(places: np.ndarray, size: int, mode: str) -> np.ndarray:
    """The elements that are read for places that may lie outside, as ``_place`` has them."""
    if mode == "wrap":
        return places % max(size, 1)
    last = max(size - 1, 0)
    if mode == "reflect":
        period = max(last * 2, 1)
        places = np.minimum(places % period, period - places % period)
    return places.clip(0, last)


def _check(
    emitter: Emitter, node: Node, dims: list[Dim], before: list[Dim], after: list[Dim], mode: str
) -> None:
    """Say what no element can be filled with, in a check of the call where sizes are open."""
    called, demands = emitter.importer.called(node), list[Demand]()
    for axis, (size, low, high) in enumerate(zip(dims, before, after, strict=True)):
        if isinstance(low, int) and isinstance(high, int) and low == 0 and high == 0:
            continue
        some = (size, 1, f"axis {axis} is empty; expected elements to pad from")
        whole = simplified(expression(size) + low + high)
        words = f"padding {text_of(low)} and {text_of(high)} leaves less than nothing of axis {axis} of "
        for left, least, said in [
            *([] if mode == "constant" else [some]),
            (whole, 0, f"{words}{text_of(size)} elements"),
        ]:
            met = compared(">=", left, least)
            if met is False:
                raise InvalidInputError(f"{called}: {said}")
            if met is None:
                holds = tirx.GE(expression(left), expression(least))
                demands.append(Demand(holds, f"{called}: {said}; mend the inputs' shapes"))
    met_aside(emitter, *demands)


def _by_kernel(
    emitter: Emitter,
    node: Node,
    data: relax.Expr,
    dims: list[Dim],
    axes: list[int],
    mode: str,
    value: Value,
    pads: relax.Expr,
) -> relax.Expr:
    """Padding that is known only when the model runs."""
    if shape_of(pads) != [2 * len(axes)]:
        raise NotTaken
    if mode != "constant" and any(compared("==", dims[axis], 0) is not False for axis in axes):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: {mode} padding of an axis that may be empty; "
            "state the padding or the shape when compiling"
        )
    count = len(axes)

    def sizes(amounts: te.Tensor, old: te.Tensor) -> te.Tensor:
        return te.compute(
            (count,),
            lambda at: old[at] + amounts[at].astype("int64") + amounts[at + count].astype("int64"),
            "sizes",
        )

    old = emitter.tensor(value_of([dims[axis] for axis in axes], (count,)))
    made = emitter.dims(emitter.builder.emit_te(sizes, pads, old, primfunc_name_hint="padded_shape"))
    results = list(dims)
    words = f"{emitter.importer.called(node)}: the padding leaves less than nothing of an axis"
    met_aside(emitter, *(Demand(tirx.GE(expression(size), expression(0)), words) for size in made))
    for axis, size in zip(axes, made, strict=True):
        results[axis] = size
    return _padded(emitter, data, results, mode, value, pads, axes)


def padded(emitter: Emitter, data: relax.Expr, amounts: list[Dim]) -> relax.Expr:
    """The tensor with zeros before and after each axis, as many fewer elements for amounts below 0."""
    dims = emitter.shape(data)
    rank = len(dims)
    results = [
        simplified(expression(size) + low + high)
        for size, low, high in zip(dims, amounts[:rank], amounts[rank:], strict=True)
    ]
    tensor = emitter.tensor(value_of(amounts, (2 * rank,)))
    return _padded(emitter, data, results, "constant", None, tensor, list(range(rank)))


def _padded(
    emitter: Emitter,
    data: relax.Expr,
    results: list[Dim],
    mode: str,
    value: Value,
    pads: relax.Expr,
    axes: list[int],
) -> relax.Expr:
    """A kernel that reads for each element of the result the one that its mode says."""
    dtype = dtype_of(data)
    fill = constant(0, dtype) if value is None else emitter.tensor(value)

    def kernel(tensor: te.Tensor, amounts: te.Tensor, fill: te.Tensor, *results: tirx.Expr) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            places, inside = list(index), []
            for at, axis in enumerate(axes):
                size = expression(simplified(tensor.shape[axis]))
                before = amounts[at].astype("int64")
                after = amounts[at + len(axes)].astype("int64")
                # Negative padding cuts elements off before anything is repeated.
                cut, cut_behind = (tirx.max(-amount, tirx.const(0, "int64")) for amount in (before, after))
                place = index[axis] - before
                inside.append(tirx.And(place >= 0, place < size))
                kept = _place(place - cut, size - cut - cut_behind, mode) + cut
                places[axis] = tirx.max(tirx.min(kept, size - 1), tirx.const(0, "int64"))
            read = tensor(*places)
            if mode != "constant":
                return read
            number = fill(*[0] * len(fill.shape))
            for condition in inside:
                read = tirx.if_then_else(condition, read, number)
            return read

        return te.compute(results, element, "padded")

    return emitter.builder.emit_te(
        kernel,
        data,
        pads,
        fill,
        *(expression(size) for size in results),
        primfunc_name_hint=f"pad_{mode}",
    )


def _place(place: tirx.Expr, size: tirx.Expr, mode: str) -> tirx.Expr:
    """The element that is read for a place that may lie outside; it never does."""
    zero, one = tirx.const(0, "int64"), tirx.const(1, "int64")
    last = tirx.max(size - 1, zero)
    match mode:
        case "reflect":
            period = tirx.max(last * 2, one)
            turn = tirx.floormod(place, period)
            return tirx.max(tirx.min(turn, period - turn), zero)
        case "wrap":
            return tirx.floormod(place, tirx.max(size, one))
        case _:
            return tirx.max(tirx.min(place, last), zero)
