"""Gradients of pooling as operators of Relax.

    R.mxplan.max_pool_backward(src, grad, pool_size, strides, padding, dilation)
    R.mxplan.average_pool_backward(src, grad, pool_size, strides, padding, dilation, count_include_pad)
    R.mxplan.adaptive_average_pool_backward(src, grad)

    src   (N, C, ...)   what the pool reads; of averages only its shape counts
    grad  (N, C, ...)   the gradient of what it writes

One to three spatial axes, channels first.  Of equal maxima the first of a window takes its gradient, as in
PyTorch and in oneDNN.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, te, tirx

from .registration import Operator, numbers, same_type


@dataclass(frozen=True)
class Pool:
    """The window of a pool: extents, strides, dilation by spatial axis, padding before all, then behind."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @classmethod
    def of(cls, call: relax.Call) -> Pool:
        """The windows of a pool of Relax's, or of a gradient."""
        attrs = call.attrs
        return cls(*(numbers(attrs[name]) for name in ("pool_size", "strides", "padding", "dilation")))

    def attributes(self) -> dict[str, list[int]]:
        """The windows as attributes of a gradient."""
        return {
            "pool_size": list(self.size),
            "strides": list(self.strides),
            "padding": list(self.padding),
            "dilation": list(self.dilation),
        }

    def reads(self, row: Sequence[tirx.Expr], tap: Sequence[tirx.Expr]) -> list[tirx.Expr]:
        """The place that a row's window reads at a tap; it may lie in the padding."""
        return [
            row[i] * self.strides[i] + tap[i] * self.dilation[i] - self.padding[i]
            for i in range(len(self.size))
        ]


def max_pool_backward(src: relax.Expr, grad: relax.Expr, pool: Pool) -> relax.Call:
    """The gradient of what a maximum pool reads."""
    return MAX_BACKWARD.call(src, grad, **pool.attributes())


def average_pool_backward(
    src: relax.Expr, grad: relax.Expr, pool: Pool, *, count_include_pad: bool
) -> relax.Call:
    """The gradient of what an average pool reads."""
    attributes = pool.attributes()
    return AVERAGE_BACKWARD.call(src, grad, **attributes, count_include_pad=count_include_pad)


def adaptive_average_pool_backward(src: relax.Expr, grad: relax.Expr) -> relax.Call:
    """The gradient of what an adaptive average pool reads."""
    return ADAPTIVE_BACKWARD.call(src, grad)


def _type(call: relax.Call) -> tvm.ir.Type:
    return same_type(call.args[0])


def _axes(sizes: Sequence[int], name: str) -> list[tirx.IterVar]:
    return [te.reduce_axis((0, size), name) for size in sizes]


def _spread(
    pool: Pool, grad: te.Tensor, at: Sequence[tirx.Expr], taps: Sequence[tirx.IterVar]
) -> tuple[list[tirx.Expr], tirx.Expr]:
    """The rows whose windows read a place at ``taps``, and whether there are such rows."""
    places = [at[i] + pool.padding[i] - taps[i] * pool.dilation[i] for i in range(len(taps))]
    rows = [place // pool.strides[i] for i, place in enumerate(places)]
    tests = [
        test
        for i, row in enumerate(rows)
        for test in (
            places[i] >= 0,
            places[i] % pool.strides[i] == 0,
            row < grad.shape[2 + i],
        )
    ]
    return rows, functools.reduce(tirx.And, tests)


def _legalize_max(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    pool = Pool.of(call)

    def compute(src: te.Tensor, grad: te.Tensor) -> te.Tensor:
        zero = tirx.const(0, grad.dtype)
        largest = te.comm_reducer(_first_of_larger, _least(src.dtype), name="largest")
        window = _axes(pool.size, "w")

        def maximum(n: tirx.Expr, c: tirx.Expr, *row: tirx.Expr) -> tirx.Expr:
            read = pool.reads(row, window)
            inside = [test for i, place in enumerate(read) for test in (place >= 0, place < src.shape[2 + i])]
            value = tirx.if_then_else(
                functools.reduce(tirx.And, inside), src(n, c, *read), tirx.min_value(src.dtype)
            )
            return largest((_flat(window, pool.size), value), axis=window)

        _, *_ = maxima = te.compute(grad.shape, maximum, "maxima")
        taps = _axes(pool.size, "t")

        def element(n: tirx.Expr, c: tirx.Expr, *at: tirx.Expr) -> tirx.Expr:
            rows, met = _spread(pool, grad, at, taps)
            is_largest = maxima[0](n, c, *rows) == _flat(taps, pool.size)
            value = tirx.if_then_else(met, tirx.Select(is_largest, grad(n, c, *rows), zero), zero)
            return te.sum(value, taps)

        return te.compute(src.shape, element, "max_pool_backward")

    return builder.call_te(compute, *call.args, primfunc_name_hint="max_pool_backward")


def _flat(taps: Sequence[tirx.IterVar], sizes: Sequence[int]) -> tirx.Expr:
    """The number of a tap within its window."""
    found: tirx.Expr = tirx.const(0, "int32")
    for tap, size in zip(taps, sizes, strict=True):
        found = found * size + tirx.Cast("int32", tap.var)
    return found


def _first_of_larger(
    left: tuple[tirx.Expr, tirx.Expr], right: tuple[tirx.Expr, tirx.Expr]
) -> tuple[tirx.Expr, tirx.Expr]:
    earlier = tirx.Or(left[1] > right[1], tirx.And(left[1] == right[1], left[0] < right[0]))
    return tirx.Select(earlier, left[0], right[0]), tirx.Select(earlier, left[1], right[1])


def _least(dtype: str):  # type: ignore[no-untyped-def]
    def identity(index_type: str, _: str) -> tuple[tirx.Expr, tirx.Expr]:
        return tirx.max_value(index_type), tirx.min_value(dtype)

    return identity


def _legalize_average(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    pool, counts_padding = Pool.of(call), bool(call.attrs["count_include_pad"])
    spatial = range(len(pool.size))

    def compute(src: te.Tensor, grad: te.Tensor) -> te.Tensor:
        extents = numbers(src.shape[2:])

        def terms(axis: int, row: tirx.Expr) -> tirx.Expr:
            """Elements that a window averages along an axis: of the image, or of the padded image."""
            size, step = pool.size[axis], pool.dilation[axis]
            start = row * pool.strides[axis] - pool.padding[axis]
            if counts_padding:
                end = extents[axis] + pool.padding[len(pool.size) + axis]
                first = tirx.const(0, "int32")
            else:
                end = extents[axis]
                first = tirx.max(0, (-start + step - 1) // step)
            last = tirx.min(size, (end - start + step - 1) // step)
            return last - first

        taps = _axes(pool.size, "t")

        def element(n: tirx.Expr, c: tirx.Expr, *at: tirx.Expr) -> tirx.Expr:
            rows, met = _spread(pool, grad, at, taps)
            count = functools.reduce(lambda a, b: a * b, (terms(i, rows[i]) for i in spatial))
            share = grad(n, c, *rows) / tirx.Cast(grad.dtype, count)
            return te.sum(tirx.if_then_else(met, share, tirx.const(0, grad.dtype)), taps)

        return te.compute(src.shape, element, "average_pool_backward")

    return builder.call_te(compute, *call.args, primfunc_name_hint="average_pool_backward")


def _legalize_adaptive(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    def compute(src: te.Tensor, grad: te.Tensor) -> te.Tensor:
        extents, outer = numbers(src.shape[2:]), numbers(grad.shape[2:])
        rows = _axes(outer, "o")

        def element(n: tirx.Expr, c: tirx.Expr, *at: tirx.Expr) -> tirx.Expr:
            tests, count = [], tirx.const(1, "int32")
            for i, row in enumerate(rows):
                begin = row * extents[i] // outer[i]
                end = ((row + 1) * extents[i] + outer[i] - 1) // outer[i]
                tests += [at[i] >= begin, at[i] < end]
                count = count * (end - begin)
            share = grad(n, c, *rows) / tirx.Cast(grad.dtype, count)
            met = functools.reduce(tirx.And, tests)
            return te.sum(tirx.Select(met, share, tirx.const(0, grad.dtype)), rows)

        return te.compute(src.shape, element, "adaptive_pool_backward")

    return builder.call_te(compute, *call.args, primfunc_name_hint="adaptive_pool_backward")


MAX_BACKWARD = Operator(
    "max_pool_backward", "the gradient of what a maximum pool reads", _type, _legalize_max
)
AVERAGE_BACKWARD = Operator(
    "average_pool_backward", "the gradient of what an average pool reads", _type, _legalize_average
)
ADAPTIVE_BACKWARD = Operator(
    "adaptive_average_pool_backward",
    "the gradient of what an adaptive average pool reads",
    _type,
    _legalize_adaptive,
)
