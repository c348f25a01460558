"""Reductions: axes as attribute or operand, none at all, computed by the model, and over nothing.

Each is one of four sums (``sum``, ``prod``, ``max``, ``min``) with something done before and after.  Where
the axes are computed, a kernel has for each axis two loops, of which one has a single turn: over the result
or over what is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax, te, tirx

from .....errors import InvalidInputError
from ...dimensions.dims import Dim, expression, product, same, simplified
from ...node import Emitter, Node, NotTaken
from ...values import dtype_of, rank_of, shape_of, value_of
from ..numbers import constant, least, most
from ..table import converts


@dataclass(frozen=True)
class _Axes:
    """Axes to reduce: axes that are known, or a tensor of as many.

    Attributes
    ----------
    keep : whether reduced axes stay, of one element.
    """

    known: Sequence[int] | None
    computed: relax.Expr | None
    keep: bool


@converts("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean")
@converts("ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
def _reduce(emitter: Emitter, node: Node) -> relax.Expr:
    data = emitter.tensor(node.input(0))
    axes = _axes(emitter, node)
    dtype = dtype_of(data)
    kind = node.op_type.removeprefix("Reduce")
    if axes.known is not None and not axes.known and kind in _AS_IT_IS:
        return data
    inner = _inner_type(kind, dtype)
    wide = data if inner == dtype else emitter.emit(relax.op.astype(data, inner))
    result = _RULES[kind](emitter, wide, axes)
    return result if inner == dtype else emitter.emit(relax.op.astype(result, dtype))


def _inner_type(kind: str, dtype: str) -> str:
    """The type that a reduction is computed in."""
    if dtype == "bool":
        return "uint8"
    if dtype in ("float16", "bfloat16") and kind not in ("Max", "Min"):
        return "float32"
    rooted = kind in ("L2", "LogSum", "LogSumExp")
    return "float64" if rooted and np.dtype(dtype).kind in "iu" else dtype


def _axes(emitter: Emitter, node: Node) -> _Axes:
    """The axes that are reduced; none at all where the node says so."""
    rank = rank_of(node.input(0))
    if rank is None:
        raise NotTaken
    keep = bool(node.attribute("keepdims", 1))
    stated = node.attribute("axes")
    given = node.input(1)
    if stated is None and given is not None:
        if isinstance(given, np.ndarray):
            stated = [int(axis) for axis in given.reshape(-1)]
        elif shape_of(given) == [0]:
            stated = []
        else:
            return _Axes(None, emitter.tensor(given), keep)
    if not stated:
        none = node.attribute("noop_with_empty_axes", 0)
        return _Axes([] if none else list(range(rank)), None, keep)
    for axis in stated:
        if not -rank <= axis < rank:
            raise InvalidInputError(
                f"{emitter.importer.called(node)}: axis {axis} of a tensor of {rank} dimensions; "
                f"expected {-rank} to {rank - 1}"
            )
    return _Axes(sorted({axis % rank for axis in stated}), None, keep)


def _sum(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    return _reduced(emitter, data, axes, "sum")


def _mean(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    if axes.known is not None and axes.known and dtype_of(data).startswith("float"):
        return emitter.emit(relax.op.mean(data, list(axes.known), axes.keep))
    total = _reduced(emitter, data, axes, "sum")
    number, dtype = product(emitter.shape(data)), dtype_of(data)
    whole, part = (
        emitter.emit(relax.op.astype(emitter.tensor(value_of([dim], ())), dtype))
        for dim in (number, product(emitter.shape(total)))
    )
    return emitter.emit(relax.op.divide(total, relax.op.divide(whole, part)))


def _sum_square(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    return _sum(emitter, emitter.emit(relax.op.multiply(data, data)), axes)


def _l1(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    return _sum(emitter, emitter.emit(relax.op.abs(data)), axes)


def _l2(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    return emitter.emit(relax.op.sqrt(_sum_square(emitter, data, axes)))


def _log_sum(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    return emitter.emit(relax.op.log(_sum(emitter, data, axes)))


def _log_sum_exp(emitter: Emitter, data: relax.Expr, axes: _Axes) -> relax.Expr:
    """The largest element is taken out first, so that nothing overflows."""
    emit = emitter.emit
    kept = _Axes(axes.known, axes.computed, keep=True)
    largest = _reduced(emitter, data, kept, "max")
    zero = constant(0, dtype_of(data))
    finite = relax.op.less(relax.op.abs(largest), constant(np.inf, dtype_of(data)))
    largest = emit(relax.op.where(finite, largest, zero))
    spread = largest if axes.known is not None else _spread(emitter, largest, data)
    total = _sum(emitter, emit(relax.op.exp(relax.op.subtract(data, spread))), axes)
    if axes.known is None or not axes.keep:
        largest = emitter.reshaped(largest, emitter.shape(total))
    return emit(relax.op.add(relax.op.log(total), largest))


def _spread(emitter: Emitter, reduced: relax.Expr, like: relax.Expr) -> relax.Expr:
    """A tensor whose axes are of one element or as those of another, in the other's shape."""

    def kernel(small: te.Tensor, large: te.Tensor) -> te.Tensor:
        zero = tirx.const(0, "int64")
        return te.compute(
            large.shape,
            lambda *index: small(
                *[
                    tirx.Select(expression(simplified(size)).equal(1), zero, at)
                    for at, size in zip(index, small.shape, strict=True)
                ]
            ),
            "spread",
        )

    return emitter.builder.emit_te(kernel, reduced, like, primfunc_name_hint="spread")


_RULES: dict[str, Callable[[Emitter, relax.Expr, _Axes], relax.Expr]] = {
    "Sum": _sum,
    "Prod": lambda emitter, data, axes: _reduced(emitter, data, axes, "prod"),
    "Max": lambda emitter, data, axes: _reduced(emitter, data, axes, "max"),
    "Min": lambda emitter, data, axes: _reduced(emitter, data, axes, "min"),
    "Mean": _mean,
    "SumSquare": _sum_square,
    "L1": _l1,
    "L2": _l2,
    "LogSum": _log_sum,
    "LogSumExp": _log_sum_exp,
}


_AS_IT_IS = {"Sum", "Prod", "Max", "Min", "Mean", "LogSumExp"}
"""Reductions that leave an element that stands alone as it is."""


def _reduced(emitter: Emitter, data: relax.Expr, axes: _Axes, kind: str) -> relax.Expr:
    dims = emitter.shape(data)
    if axes.known is None:
        return _by_computed_axes(emitter, data, dims, axes, kind)
    if not axes.known:
        return data
    if any(same(dims[axis], 0) for axis in axes.known):
        kept = [(1 if axis in axes.known else dim) for axis, dim in enumerate(dims)]
        left = kept if axes.keep else [dim for axis, dim in enumerate(dims) if axis not in axes.known]
        shape = relax.ShapeExpr([expression(dim) for dim in left])
        return emitter.emit(relax.op.full(shape, constant(_start(kind, dtype_of(data)), dtype_of(data))))
    operator = {"sum": relax.op.sum, "prod": relax.op.prod, "max": relax.op.max, "min": relax.op.min}[kind]
    return emitter.emit(operator(data, list(axes.known), axes.keep))


def _start(kind: str, dtype: str) -> np.ndarray:
    """Returns the result of a reduction over nothing."""
    number = {"sum": 0, "prod": 1, "max": least(dtype), "min": most(dtype)}[kind]
    return np.asarray(number).astype(dtype)


def _by_computed_axes(
    emitter: Emitter, data: relax.Expr, dims: list[Dim], axes: _Axes, kind: str
) -> relax.Expr:
    rank, given = len(dims), shape_of(axes.computed)
    if given is None or len(given) != 1 or not isinstance(given[0], int) or given[0] == 0:
        raise NotTaken
    count = given[0]
    kept, left = _shapes(emitter, dims, axes.computed, count)
    extents = emitter.dims(kept)

    dtype = dtype_of(data)

    def kernel(tensor: te.Tensor, *extents: tirx.Expr) -> te.Tensor:
        # A loop without turns would leave the result as it is: one turn at least, over what sums start with.
        turns = [
            tirx.floordiv(size, tirx.max(extent, 1))
            for size, extent in zip(tensor.shape, extents, strict=True)
        ]
        loops = [te.reduce_axis((0, tirx.max(turn, 1)), f"r{axis}") for axis, turn in enumerate(turns)]
        start = tirx.const(_start(kind, dtype).item(), dtype)
        reducer = _reducer(kind, dtype)

        def element(*index: tirx.Var) -> tirx.Expr:
            value = tensor(*[at + loop.var for at, loop in zip(index, loops, strict=True)])
            for turn in turns:
                value = tirx.if_then_else(turn > 0, value, start)
            return reducer(value, axis=loops)

        return te.compute(extents, element, "reduced")

    result = emitter.builder.emit_te(
        kernel, data, *(expression(extent) for extent in extents), primfunc_name_hint=f"reduce_{kind}"
    )
    return result if axes.keep or not rank else emitter.reshaped(result, emitter.dims(left))


def _shapes(
    emitter: Emitter, dims: list[Dim], computed: relax.Expr, count: int
) -> tuple[relax.Expr, relax.Expr]:
    """The result's dimensions with reduced axes as 1, and without them."""
    rank = len(dims)

    def kernel(sizes: te.Tensor, axes: te.Tensor) -> list[te.Tensor]:
        def stays(axis: tirx.Expr) -> tirx.Expr:
            hits = [
                tirx.Or(axes[at].astype("int64").equal(axis), axes[at].astype("int64").equal(axis - rank))
                for at in range(count)
            ]
            found = hits[0]
            for hit in hits[1:]:
                found = tirx.Or(found, hit)
            return tirx.Not(found)

        def nth(number: tirx.Var) -> tirx.Expr:
            before, found = tirx.const(0, "int64"), tirx.const(0, "int64")
            for axis in range(rank):
                here = tirx.And(stays(tirx.const(axis, "int64")), before.equal(number))
                found = tirx.Select(here, sizes[axis], found)
                before = before + stays(tirx.const(axis, "int64")).astype("int64")
            return found

        one = tirx.const(1, "int64")
        return [
            te.compute((rank,), lambda axis: tirx.Select(stays(axis), sizes[axis], one), "kept"),
            te.compute((max(0, rank - count),), nth, "left"),
        ]

    found = emitter.builder.emit_te(
        kernel, emitter.tensor(value_of(dims, (rank,))), computed, primfunc_name_hint="reduced_shape"
    )
    kept, left = (emitter.emit(relax.TupleGetItem(found, at)) for at in (0, 1))
    return kept, left


def _reducer(kind: str, dtype: str) -> Callable[..., tirx.Expr]:
    combine = {
        "sum": lambda a, b: a + b,
        "prod": lambda a, b: a * b,
        "max": lambda a, b: tirx.max(a, b),
        "min": lambda a, b: tirx.min(a, b),
    }[kind]
    return te.comm_reducer(combine, lambda _: tirx.const(_start(kind, dtype).item(), dtype), name=kind)
