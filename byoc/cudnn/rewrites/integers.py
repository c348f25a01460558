"""Products of integers as cuDNN has them, made of what a quantised model has around its products.

    uint8 that the region makes           int8 with a zero point that is 128 less: cuDNN takes int8 alone
    the zero point of a product's source  a constant that is added, for each channel or each place
    product real; quantization            the product, with the scale of its integers
    add(product, dequantization of q)     the product, adding the integers q
    add(dequantization of a product)      the same, rounded where it stands to the numbers the model has there

cuDNN's products know no zero points.  What a zero point z adds to a sum is z times the filters' numbers that
see the image, and not its border: one number for each channel without padding, else one for each place of
each image.
Scales and zero points are tensors and no numbers of a graph, so that equal layers share plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.forms import Numbers, numbers_of
from tvm_mxplan.core.layout.layout import channels_last
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

_HALF = 128
"""The difference of the numbers of uint8 and int8 at the same place in their ranges."""


# --- signed integers ----------------------------------------------------------------------------------------


def sign(graph: Graph) -> None:
    """Make int8 of the uint8 that conversions write, and conversions alone read."""
    for number, value in enumerate(graph.values):
        writer = graph.writer(number)
        if value.dtype != "uint8" or value.kind != "local" or value.alias_of >= 0 or writer is None:
            continue
        touching = [writer, *graph.readers(number)]
        if graph.views(number) or not all(map(_is_conversion, (graph.steps[at] for at in touching))):
            continue
        graph.values[number] = replace(value, dtype="int8")
        for at in touching:
            step = graph.steps[at]
            assert step
            graph.replace(at, _lowered(graph, step, "dst" if step.dst == number else "src"))


def _is_conversion(step: ir.Step | None) -> bool:
    return step is not None and isinstance(step.attrs, ir.Quantization)


def _lowered(graph: Graph, step: ir.Step, side: str) -> ir.Step:
    """A conversion whose zero point on one side is half a range lower."""
    role = f"{side}_zero_point"
    zero = next((graph.constant(one.value) for one in step.operands if one.role == role), None)
    moved = (np.zeros(1, "int32") if zero is None else zero) - _HALF
    kept = [one for one in step.operands if one.role != role]
    if moved.any():
        kept.insert(-1, ir.Operand(role, graph.add_constant(moved, f"{step.name}.{role}", "int32")))
    return replace(step, operands=tuple(kept))


# --- zero points of sources ---------------------------------------------------------------------------------


def without_zero_point(graph: Graph, step: ir.Step) -> ir.Step | None:
    """A product of integers with what its source's zero point adds as a constant; None where it has none."""
    roles = {one.role: one.value for one in step.operands}
    if "src_zero_point" not in roles:
        return step
    zero, scale, row, filters = (
        graph.constant(roles[role]) for role in ("src_zero_point", "src_scale", "weights_scale", "weights")
    )
    if zero is None or scale is None or row is None or filters is None:
        return None
    if not isinstance(step.attrs, ir.Convolution):
        return None
    counted = _counted(filters, step.attrs, static_shape(graph.values[roles["src"]].shape)[2:])
    factor = -float(zero[0]) * float(scale[0]) * row.astype("float64")
    added = counted * factor.reshape(-1, *(1,) * (counted.ndim - 1))
    kept = [one for one in step.operands if one.role != "src_zero_point"]
    if not any(step.attrs.padding):
        bias = graph.constant(roles["bias"]) if "bias" in roles else np.zeros(len(counted))
        if bias is None:
            return None
        whole = bias.reshape(-1) + added.reshape(len(counted), -1)[:, 0]
        moved = ir.Operand("bias", graph.add_constant(whole, f"{step.name}.bias"))
        return replace(step, operands=(*(one for one in kept[:-1] if one.role != "bias"), moved, kept[-1]))
    # For each image: engines give all but the first the wrong numbers of one that is for all of them.
    images = static_shape(graph.values[step.dst].shape)[0]
    image = np.moveaxis(added, 0, -1)
    last = graph.add_constant(np.broadcast_to(image, (images, *image.shape)), f"{step.name}.zero")
    rank = added.ndim + 1
    seen = ir.Value(
        f"{step.name}.zero", (images, *added.shape), "float32", "local", channels_last(rank), alias_of=last
    )
    post_op = ir.BinaryPostOp("add", graph.add(seen))
    return replace(step, operands=tuple(kept), post_ops=(post_op, *step.post_ops))


def _counted(filters: np.ndarray, attrs: ir.Convolution, image: Sequence[int]) -> np.ndarray:
    """Sums of the filters' numbers [K, places...] that stand over the image, and not over its padding."""
    axes = len(image)
    found = filters.astype("float64").sum(axis=-axes - 1).reshape(-1, *filters.shape[-axes:])
    for axis, extent in enumerate(image):
        window, begin, end = filters.shape[axis - axes], attrs.padding[axis], attrs.padding[axes + axis]
        step, dilation = attrs.strides[axis], attrs.dilation[axis]
        places = (extent + begin + end - dilation * (window - 1) - 1) // step + 1
        at = np.arange(places)[:, None] * step + np.arange(window) * dilation - begin
        inside = ((at >= 0) & (at < extent)).astype("float64")
        found = np.moveaxis(np.tensordot(found, inside, (1 + axis, 1)), -1, 1 + axis)
    return found


def is_whole_pool(graph: Graph, step: ir.Step) -> bool:
    """Whether a step is the maximum of windows none of which reaches over the image.

    What cuDNN takes for the padding of integers, it says nowhere.
    """
    if not isinstance(step.attrs, ir.Pooling):
        return False
    source, result = (static_shape(graph.values[value].shape) for value in (step.operand("src"), step.dst))
    attrs, inside = step.attrs, True
    for axis, window in enumerate(attrs.kernel):
        last = (result[2 + axis] - 1) * attrs.strides[axis] + attrs.dilation[axis] * (window - 1) + 1
        inside = inside and attrs.padding[axis] == 0 and last <= source[2 + axis]
    return inside and attrs.algorithm == "max"


# --- conversions in products --------------------------------------------------------------------------------


def writing_integers(graph: Graph, at: int) -> tuple[int, ir.Step] | None:
    """The product of integers in front of a conversion into integers, and what it becomes with it."""
    step = graph.steps[at]
    assert step
    producer = graph.producer(step.operand("src"))
    root = graph.steps[producer] if producer is not None else None
    if not root or not root.is_quantized or _has(root, "dst_scale") or not _has(step, "dst_scale"):
        return None
    numbers = numbers_of(graph, step, "dst")
    if _has(step, "src_scale") or not (numbers.is_single and numbers.is_known):
        return None
    kept = [one for one in root.operands if one.role != "dst"]
    operands = (*kept, *numbers.operands("dst"), ir.Operand("dst", step.dst))
    return producer, replace(root, operands=operands)  # type: ignore[return-value]


def rounded_there(graph: Graph, conversion: int) -> tuple[int, ir.Step] | None:
    """The product whose integers a conversion alone reads, rounding in registers, with a real result."""
    step = graph.steps[conversion]
    if step is None or not _is_conversion(step) or _has(step, "dst_scale"):
        return None
    producer = graph.producer(step.operand("src"))
    root = graph.steps[producer] if producer is not None else None
    if not root or not root.is_quantized or not _has(root, "dst_scale"):
        return None
    numbers, limits = numbers_of(graph, root, "dst"), np.iinfo(graph.values[root.dst].dtype)
    (scale,), (zero,) = numbers.scale, numbers.zero
    rounding = (
        _by(graph, root, "div", scale),
        ir.EltwisePostOp("round", 0.0, 0.0),
        _by(graph, root, "max", limits.min - zero),
        _by(graph, root, "min", limits.max - zero),
        _by(graph, root, "mul", scale),
    )
    kept = tuple(one for one in root.operands if one.role not in ("dst_scale", "dst_zero_point", "dst"))
    operands = (*kept, ir.Operand("dst", step.dst))
    return producer, replace(root, operands=operands, post_ops=(*root.post_ops, *rounding))  # type: ignore[return-value]


def integers_of(graph: Graph, value: int) -> tuple[int, Numbers] | None:
    """The integers that a real tensor is converted from, and their numbers; None of what is none."""
    writer = graph.writer(value)
    step = graph.steps[writer] if writer is not None else None
    if step is None or not _is_conversion(step) or _has(step, "dst_scale"):
        return None
    integers, numbers = step.operand("src"), numbers_of(graph, step, "src")
    alike = graph.values[integers].layout == graph.values[value].layout
    return (integers, numbers) if alike and numbers.is_single and numbers.is_known else None


def adding(graph: Graph, root: ir.Step, integers: int, numbers: Numbers) -> tuple[ir.PostOp, ...]:
    """The post-ops that add integers as the real numbers that they stand for."""
    (scale,), (zero,) = numbers.scale, numbers.zero
    moved = (_by(graph, root, "sub", zero),) if zero else ()
    added = ir.BinaryPostOp("add", integers)
    return (_by(graph, root, "div", scale), *moved, added, _by(graph, root, "mul", scale))


def _by(graph: Graph, root: ir.Step, algorithm: str, number: float) -> ir.PostOp:
    """A post-op with one number, which is a tensor."""
    rank = len(graph.values[root.dst].shape)
    array = np.full((1,) * rank, number, "float32")
    return ir.BinaryPostOp(algorithm, graph.add_constant(array, f"{root.name}.{algorithm}"))


def _has(step: ir.Step, role: str) -> bool:
    return any(one.role == role for one in step.operands)
