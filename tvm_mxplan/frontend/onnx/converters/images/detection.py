"""NonMaxSuppression: boxes by their scores, without those that overlap a better one.

A kernel goes through the boxes of each class, the best first, and keeps what is far enough from all that it
has kept; how many there are is known when it is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from ...dimensions.dims import expression
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts


@converts("NonMaxSuppression", first_opset=10)
def _suppressed(emitter: Emitter, node: Node) -> Value:
    boxes, scores = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    if dtype_of(boxes) != "float32" or len(emitter.shape(scores)) != 3:
        raise NotTaken
    most, overlap = _number(emitter, node, 2, "int64"), _number(emitter, node, 3, "float32")
    if node.input(4) is None:
        threshold = constant([-np.inf], "float32")
    else:
        threshold = _number(emitter, node, 4, "float32")
    order = emitter.emit(relax.op.argsort(scores, 2, True, "int64"))
    centred = bool(node.attribute("center_point_box", 0))

    def kernel(*operands: te.Tensor) -> list[te.Tensor]:
        batch, classes, count = operands[1].shape
        shapes = [(batch * classes * count, 3), (3,)]
        body = _search(batch, classes, count, centred=centred)
        return te.extern(shapes, list(operands), body, dtype=["int64", "int64"], name="suppressed")

    both = emitter.builder.emit_te(
        kernel, boxes, scores, order, most, overlap, threshold, primfunc_name_hint="non_max_suppression"
    )
    state = emitter.emit(relax.TupleGetItem(both, 1))
    (number,) = emitter.dims(emitter.emit(relax.op.strided_slice(state, [0], [0], [1])))
    bounds = ([0], [expression(0)], [expression(number)], [expression(1)])
    return emitter.emit(
        relax.op.strided_slice(emitter.emit(relax.TupleGetItem(both, 0)), *bounds, assume_inbound=True)
    )


def _number(emitter: Emitter, node: Node, at: int, dtype: str) -> relax.Expr:
    """An operand of one number, 0 where it is left out."""
    value = node.input(at)
    if value is None:
        return constant([0], dtype)
    tensor = emitter.tensor(value)
    tensor = tensor if dtype_of(tensor) == dtype else emitter.emit(relax.op.astype(tensor, dtype))
    return emitter.reshaped(tensor, [1])


def _search(batch: Any, classes: Any, count: Any, *, centred: bool) -> Any:
    """The body of the kernel."""

    def corners(boxes: Any, base: Any) -> list[Any]:
        """Top, left, bottom and right."""
        a, b, c, d = (boxes[base + at] for at in range(4))
        if centred:  # the middle, width and height
            half = tirx.const(0.5, "float32")
            return [b - d * half, a - c * half, b + d * half, a + c * half]
        return [tirx.min(a, c), tirx.min(b, d), tirx.max(a, c), tirx.max(b, d)]

    def shared(one: list[Any], other: list[Any]) -> Any:
        """Intersection over union of two boxes."""
        zero = tirx.const(0.0, "float32")
        height = tirx.max(tirx.min(one[2], other[2]) - tirx.max(one[0], other[0]), zero)
        width = tirx.max(tirx.min(one[3], other[3]) - tirx.max(one[1], other[1]), zero)
        areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
        union = areas[0] + areas[1] - height * width
        return tirx.if_then_else(union > zero, height * width / union, zero)

    def body(ins: Any, outs: Any) -> tirx.Stmt:
        boxes, scores, order, most, overlap, threshold = (T.buffer_proxy(one) for one in ins)
        result, state = (
            T.buffer_proxy(one) for one in outs
        )  # rows; their number, the class's first, is kept
        zero, one = (tirx.const(number, "int64") for number in (0, 1))
        with IRBuilder() as builder, T.serial(0, batch) as row, T.serial(0, classes) as kind:
            with T.If(tirx.And(row.equal(0), kind.equal(0))), T.Then():
                state[0] = zero
            state[1] = state[0]
            with T.serial(0, count) as place:
                start = (row * classes + kind) * count
                box = order[start + place]
                fits = state[0] - state[1] < most[0]
                state[2] = tirx.Cast("int64", tirx.And(fits, scores[start + box] > threshold[0]))
                seen = (state[0] - state[1]) * state[2]
                with T.serial(0, seen) as kept, T.If(state[2] > zero), T.Then():
                    other = result[(state[1] + kept) * 3 + 2]
                    pair = [corners(boxes, (row * count + at) * 4) for at in (box, other)]
                    with T.If(shared(*pair) > overlap[0]), T.Then():
                        state[2] = zero
                with T.If(state[2] > zero), T.Then():
                    result[state[0] * 3] = tirx.Cast("int64", row)
                    result[state[0] * 3 + 1] = tirx.Cast("int64", kind)
                    result[state[0] * 3 + 2] = box
                    state[0] = state[0] + one
        return builder.get()

    return body
