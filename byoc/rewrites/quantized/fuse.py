"""Conversions inside the products of integers that they follow.

    v2 = product(v1 u8) real;  v3 = quantization(v2)         v3 = product(v1 u8) u8, with the scale of v3
    v3 = product(...) u8;  v4 = quantization(v3) real;       v6 = product(...), rounded to v3's numbers where
         v6 = binary add(v4, v5)                                  it stands, + v5
    product(...) + v5, v5 = quantization(r) real             product(...) / s - z + r, times s

A product rounds a result between two others of its own in registers, to the numbers that the model says it
has there, and so does what the model does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..graph import Graph
from .forms import numbers_of

_MOST_POST_OPS = 24


def take_conversion(graph: Graph, at: int) -> None:
    """Let the product of integers in front of a conversion write what that gives.

    Integers that are to be added to another tensor stay for ``take_sum``.
    """
    step = graph.steps[at]
    assert step
    producer = graph.producer(step.operand("src"))
    if _is_to_real(step) and not _is_added(graph, at, step.dst):
        if not _take_rounding(graph, at, step):
            _take_requantised(graph, at, step)
        return
    root = graph.steps[producer] if producer is not None else None
    if producer is None or not root or not _writes_real(root) or graph.values[step.dst].dtype == "float32":
        return
    numbers = numbers_of(graph, step, "dst")
    if numbers.is_single:
        graph.merge(producer, at, _writing(root, step.dst, numbers.operands("dst"), root.post_ops))


def take_sum(graph: Graph, at: int) -> bool:
    """Add in the product whose integers one of the addends of a binary step is converted from.

    The later one does, where both addends are such; False where none is.
    """
    step = graph.steps[at]
    assert step
    shape, found = graph.values[step.dst].shape, []
    for role, other in (("src", "src1"), ("src1", "src")):
        conversion = graph.producer(step.operand(role))
        integers = _integers_of(graph, conversion)
        alike = graph.values[step.operand(other)].shape == shape == graph.values[step.operand(role)].shape
        if conversion is not None and integers is not None and alike:
            found.append((integers, conversion, step.operand(other)))
    if not found or not isinstance(step.attrs, ir.Binary) or step.attrs.algorithm != "add":
        return False
    producer, conversion, added = max(found)
    root = graph.steps[producer]
    assert root
    post_ops = (*root.post_ops, *_rounding(graph, root, root.dst), ir.BinaryPostOp("add", added))
    graph.drop_into(conversion, root.name)
    graph.merge(producer, at, _writing(root, step.dst, [], post_ops))
    return True


def read_integers(graph: Graph) -> None:
    """Let products add integers as they stand, and write real numbers where only these are read."""
    for at, step in enumerate(graph.steps):
        if step and step.is_quantized:
            _add_integers(graph, at, step)
    for at, step in enumerate(graph.steps):
        if step and isinstance(step.attrs, ir.Quantization):
            _take_requantised(graph, at, step)


def _is_added(graph: Graph, at: int, value: int) -> bool:
    """True if the one step that reads ``value`` adds it to a tensor of the same shape."""
    if not graph.is_private(value):
        return False
    reader = next((step for step in graph.steps[at + 1 :] if step and value in step.reads()), None)
    if not reader or not isinstance(reader.attrs, ir.Binary) or reader.attrs.algorithm != "add":
        return False
    shapes = {graph.values[reader.operand(role)].shape for role in ("src", "src1")}
    return len(shapes) == 1


def _add_integers(graph: Graph, at: int, step: ir.Step) -> None:
    post_ops: list[ir.PostOp] = []
    taken: set[int] = set()
    for post_op in step.post_ops:
        written = graph.writer(post_op.value) if isinstance(post_op, ir.BinaryPostOp) else None
        conversion = graph.steps[written] if written is not None else None
        if not conversion or not _is_to_real(conversion) or post_op.algorithm != "add":  # type: ignore[union-attr]
            post_ops.append(post_op)
            continue
        numbers, value = numbers_of(graph, conversion, "src"), conversion.operand("src")
        plain = graph.values[value].layout == graph.values[post_op.value].layout  # type: ignore[union-attr]
        if (
            not (numbers.is_single and numbers.is_known)
            or not plain
            or len(step.post_ops) + 2 > _MOST_POST_OPS
        ):
            post_ops.append(post_op)
            continue
        (scale,), (zero,) = numbers.scale, numbers.zero
        taken.add(written)  # type: ignore[arg-type]
        post_ops.append(ir.EltwisePostOp("linear", _inverse(scale), float(-zero)))
        post_ops.append(ir.BinaryPostOp("add", value))
        post_ops.append(ir.EltwisePostOp("linear", scale, 0.0))
    if tuple(post_ops) != step.post_ops:
        graph.replace(at, replace(step, post_ops=_with_one_line_each(post_ops)))
        for place in taken:
            reader = graph.steps[place]
            if reader and graph.is_unread(reader.dst):
                graph.drop_into(place, step.name)


def _take_requantised(graph: Graph, at: int, step: ir.Step) -> None:
    """A conversion of the integers that one product writes for it alone."""
    producer = _integers_of(graph, at)
    if producer is None:
        return
    root = graph.steps[producer]
    assert root
    real = graph.values[step.dst].dtype == "float32"
    scales = [] if real else numbers_of(graph, step, "dst").operands("dst")
    post_ops = (*root.post_ops, *_rounding(graph, root, root.dst))
    graph.merge(producer, at, _writing(root, step.dst, scales, post_ops))


def _take_rounding(graph: Graph, at: int, step: ir.Step) -> bool:
    """Round in a product of real numbers what is converted into integers and back behind it."""
    conversion = graph.producer(step.operand("src"))
    there = graph.steps[conversion] if conversion is not None else None
    if not there or not isinstance(there.attrs, ir.Quantization) or _has(there, "src_scale"):
        return False
    producer = graph.producer(there.operand("src"))
    root = graph.steps[producer] if producer is not None else None
    single = numbers_of(graph, there, "dst").is_single
    if not root or not isinstance(root.attrs, ir.PRODUCTS) or not single or root.has_depthwise:
        return False
    if len(root.post_ops) + 4 > _MOST_POST_OPS:
        return False
    post_ops = (*root.post_ops, *_rounding(graph, there, there.dst))
    graph.drop_into(conversion, root.name)  # type: ignore[arg-type]
    graph.merge(producer, at, _writing(root, step.dst, [], post_ops))  # type: ignore[arg-type]
    return True


def _integers_of(graph: Graph, conversion: int | None) -> int | None:
    """The product whose integers a conversion, and it alone, reads."""
    step = graph.steps[conversion] if conversion is not None else None
    if not step or not isinstance(step.attrs, ir.Quantization):
        return None
    producer = graph.producer(step.operand("src"))
    root = graph.steps[producer] if producer is not None else None
    fits = root and root.is_quantized and _has(root, "dst_scale") and len(root.post_ops) + 5 <= _MOST_POST_OPS
    return producer if fits else None


def _rounding(graph: Graph, step: ir.Step, integers: int) -> tuple[ir.PostOp, ...]:
    """The rounding that writing the ``integers`` of a step and reading them as real numbers is."""
    numbers, limits = numbers_of(graph, step, "dst"), np.iinfo(graph.values[integers].dtype)
    (scale,), (zero,) = numbers.scale, numbers.zero
    return (
        ir.EltwisePostOp("linear", _inverse(scale), 0.0),
        ir.EltwisePostOp("round", 0.0, 0.0),
        ir.EltwisePostOp("clip", float(limits.min - zero), float(limits.max - zero)),
        ir.EltwisePostOp("linear", scale, 0.0),
    )


def _with_one_line_each(post_ops: list[ir.PostOp]) -> tuple[ir.PostOp, ...]:
    """The same with two lines in a row as one, in float32 as they are computed."""
    found: list[ir.PostOp] = []
    for post_op in post_ops:
        last = found[-1] if found else None
        if _is_line(last) and _is_line(post_op):
            alpha = np.float32(last.alpha) * np.float32(post_op.alpha)  # type: ignore[union-attr]
            beta = np.float32(last.beta) * np.float32(post_op.alpha) + np.float32(post_op.beta)  # type: ignore[union-attr]
            found[-1] = ir.EltwisePostOp("linear", float(alpha), float(beta))
        else:
            found.append(post_op)
    return tuple(found)


def _is_line(post_op: ir.PostOp | None) -> bool:
    return isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm == "linear"


def _inverse(scale: float) -> float:
    return float(np.float32(1) / np.float32(scale))


def _writing(root: ir.Step, dst: int, scales: list[ir.Operand], post_ops: tuple[ir.PostOp, ...]) -> ir.Step:
    """The product with another result and its numbers."""
    kept = [one for one in root.operands if one.role not in ("dst", "dst_scale", "dst_zero_point")]
    operands: tuple[ir.Operand, ...] = (*kept, *scales, ir.Operand("dst", dst))
    return replace(root, operands=operands, post_ops=post_ops)


def _writes_real(step: ir.Step) -> bool:
    return isinstance(step.attrs, ir.PRODUCTS) and step.is_quantized and not _has(step, "dst_scale")


def _is_to_real(step: ir.Step) -> bool:
    return isinstance(step.attrs, ir.Quantization) and not _has(step, "dst_scale")


def _has(step: ir.Step, role: str) -> bool:
    return any(operand.role == role for operand in step.operands)
