"""Gradients of lookups: rows of a table, elements by index."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import relax, te, tirx
from tvm.relax import op
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from ...errors import UnsupportedError
from .table import Backward, gradient_of


@gradient_of("take")
def _take(back: Backward) -> list[relax.Expr]:
    """Rows of the gradient are added where they were taken from, in the order of the indices."""
    indices = back.operands[1]
    shape, taken, axis = back.shape(0), back.shape(1), back.call.attrs.axis
    if axis is None and len(shape) != 1:
        raise UnsupportedError("a take from a tensor seen as one row cannot be trained yet; give it an axis")
    at = 0 if axis is None else int(axis) % len(shape)
    before, rows, behind = math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])
    count = math.prod(taken)

    def body(ins: Sequence[tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
        grad, places = ins
        (found,) = outs
        with IRBuilder() as ib:
            with T.parallel(0, before) as outer:
                with T.serial(0, rows) as row, T.serial(0, behind) as inner:
                    T.buffer_store(found, tirx.const(0, found.dtype), [outer, row, inner])
                with T.serial(0, count) as number, T.serial(0, behind) as inner:
                    place = places[number]
                    row = tirx.Select(place < 0, place + rows, place)
                    row = tirx.max(
                        tirx.min(row, tirx.const(rows - 1, places.dtype)), tirx.const(0, places.dtype)
                    )
                    value = found[outer, row, inner] + grad[outer, number, inner]
                    T.buffer_store(found, value, [outer, row, inner])
            return ib.get()

    def kernel(grad: te.Tensor, places: te.Tensor) -> te.Tensor:
        return te.extern(
            [(before, rows, behind)], [grad, places], body, name="take_backward", dtype=[grad.dtype]
        )

    grad = back.emit(back.reshaped(back.grad, (before, count, behind)))
    places = back.emit(back.reshaped(indices, (count,)))
    found = back.builder.call_te(kernel, grad, places, primfunc_name_hint="take_backward")
    return [back.reshaped(found, shape), back.none(1)]


@gradient_of("gather_elements")
def _gather_elements(back: Backward) -> list[relax.Expr]:
    """Elements of the gradient are added where they were gathered from."""
    shape, dtype = back.shape(0), back.dtype
    axis = int(back.call.attrs.axis) % len(shape)
    indices, grad = back.emit(op.astype(back.operands[1], "int64")), back.emit(back.grad)
    gathered = back.shape(1)
    if gathered == (*shape[:axis], 1, *shape[axis + 1 :]):  # one of each row
        row = [-1 if at == axis else 1 for at in range(len(shape))]
        places = back.reshaped(op.arange(0, shape[axis], 1, "int64"), row)
        return [op.where(op.equal(places, indices), grad, back.number(0)), back.none(1)]
    return [op.scatter_elements(op.zeros(shape, dtype), indices, grad, axis, "add"), back.none(1)]


@gradient_of("gather_nd")
def _gather_nd(back: Backward) -> list[relax.Expr]:
    """Slices of the gradient are added where they were gathered from."""
    if int(back.call.attrs.batch_dims):
        raise UnsupportedError("gather_nd along axes of a batch cannot be trained yet")
    zeros = op.zeros(back.shape(), back.dtype)
    return [op.scatter_nd(zeros, back.operands[1], back.emit(back.grad), "add"), back.none(1)]


@gradient_of("topk")
def _topk(back: Backward) -> list[relax.Expr]:
    """Elements of the gradient go where the largest ones stood, each to a place of its own."""
    attrs, shape = back.call.attrs, back.shape()
    kind, axis = str(attrs.ret_type), int(attrs.axis) % len(shape)
    if kind == "indices":
        return [back.none(0)]
    grad, found = back.grad, back.result
    if kind == "both":
        grad = back.emit(relax.TupleGetItem(grad, 0))
    else:
        again = op.topk(back.operands[0], int(attrs.k), axis, "both", bool(attrs.largest), "int64")
        found = back.emit(again)
    places = back.emit(op.astype(back.emit(relax.TupleGetItem(found, 1)), "int64"))
    return [op.scatter_elements(op.zeros(shape, back.dtype), places, grad, axis)]
