"""Averages over windows, whose divisors TVM counts otherwise, and norms with results for gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tvm import relax

from ....errors import UnsupportedError
from ..node import Emitter, Node, dims_of
from .table import converts

_POOLS = {1: relax.op.nn.avg_pool1d, 2: relax.op.nn.avg_pool2d, 3: relax.op.nn.avg_pool3d}


@converts("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _average(emitter: Emitter, node: Node) -> relax.Expr:
    axes = int(node.operator[len("aten.avg_pool")])
    size = extents(node["kernel_size"], axes)
    strides = extents(node["stride"] or size, axes)
    padding = extents(node["padding"], axes)
    source, shape = node["self"], dims_of(node["self"])
    batched = len(shape) == axes + 2
    if not batched:
        source = emitter.reshaped(source, [1, *shape])
    divisor = node.operands.get("divisor_override")
    includes = node["count_include_pad"] or divisor is not None
    if "int" in node.result.dtype and (divisor is not None or any(padding) or node["ceil_mode"]):
        raise UnsupportedError(
            "averages of integers, of which padding, a divisor or ceil_mode decides how they are rounded; "
            "expected floating-point numbers"
        )
    cut = node["ceil_mode"] and not _fit(shape[-axes:], size, strides, padding)
    if cut and (divisor is not None or (includes and any(padding))):
        found = _average_with_ends(emitter, node, source, (size, strides, padding))
        return found if batched else emitter.reshaped(found, dims_of(found)[1:])
    found = emitter.emit(
        _POOLS[axes](
            source,
            size,
            strides,
            [*padding, *padding],
            ceil_mode=bool(cut),
            count_include_pad=bool(includes and not cut),
        )
    )
    if divisor is not None:
        factor = relax.const(math.prod(size) / divisor, node.result.dtype)
        found = emitter.emit(relax.op.multiply(found, factor))
    return found if batched else emitter.reshaped(found, dims_of(found)[1:])


def _average_with_ends(
    emitter: Emitter,
    node: Node,
    source: relax.Expr,
    window: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> relax.Expr:
    """Averages of which the last windows reach beyond the padding, over as many elements as they hold."""
    axes = len(window[0])
    sizes, results = dims_of(source)[-axes:], node.result.shape[-axes:]
    if not all(isinstance(dim, int) for dim in (*sizes, *results)):
        raise UnsupportedError(
            "its last windows reach beyond the padding (ceil_mode), and padding or a divisor counts in the "
            "average of an image whose size varies; expected ceil_mode=False, or count_include_pad=False"
        )
    after, counts = [], np.ones((), "float64")
    for axis, (extent, result, size, stride, pad) in enumerate(zip(sizes, results, *window, strict=True)):
        starts = np.arange(result) * stride - pad
        held = np.minimum(starts + size, extent + pad) - starts
        counts = counts[..., None] * held.reshape([*[1] * axis, result])
        after.append(max(int(starts[-1]) + size - extent, pad))
    kernel, strides, before = window
    found = emitter.emit(_POOLS[axes](source, kernel, strides, [*before, *after], count_include_pad=True))
    divisor = node.operands.get("divisor_override")
    factors = math.prod(kernel) / (counts if divisor is None else np.full(counts.shape, float(divisor)))
    return emitter.emit(
        relax.op.multiply(found, relax.const(factors.astype(node.result.dtype), node.result.dtype))
    )


def extents(value: int | Sequence[int], axes: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * axes if len(values) == 1 else values


def _fit(
    shape: Sequence[object], size: Sequence[int], strides: Sequence[int], padding: Sequence[int]
) -> bool:
    """Whether windows end where the padded input does, on all axes."""
    return all(
        isinstance(extent, int) and (extent + 2 * pad - window) % stride == 0
        for extent, window, stride, pad in zip(shape, size, strides, padding, strict=True)
    )


@converts("native_layer_norm.default", "layer_norm.default")
def _layer_norm(emitter: Emitter, node: Node) -> relax.Expr | list[relax.Expr | None]:
    dtype = node.stated[0].dtype if node.stated[0] else "float32"
    shape = [int(extent) for extent in node["normalized_shape"]]
    gamma, beta = (
        node[name] if node[name] is not None else _constant(shape, number, dtype)
        for name, number in (("weight", 1), ("bias", 0))
    )
    axes = list(range(-len(shape), 0))
    if dtype == "float64":
        found = _normed(emitter, node["input"], axes, node["eps"], (gamma, beta))
        return found if len(node.stated) == 1 else [found, None, None]
    found = emitter.emit(relax.op.nn.layer_norm(node["input"], gamma, beta, axes, node["eps"]))
    return found if len(node.stated) == 1 else [found, None, None]


@converts("native_group_norm.default", "group_norm.default")
def _group_norm(emitter: Emitter, node: Node) -> relax.Expr | list[relax.Expr | None]:
    dtype = node.stated[0].dtype if node.stated[0] else "float32"
    source = node["input"]
    channels, rank = int(dims_of(source)[1]), len(dims_of(source))
    groups = node.operands.get("group", node.operands.get("num_groups"))
    gamma, beta = (
        node[name] if node[name] is not None else _constant([channels], number, dtype)
        for name, number in (("weight", 1), ("bias", 0))
    )
    if dtype == "float64":
        dims = dims_of(source)
        apart = emitter.reshaped(source, [dims[0], groups, channels // groups, *dims[2:]])
        per_channel = [
            emitter.reshaped(one, [groups, channels // groups, *[1] * (rank - 2)]) for one in (gamma, beta)
        ]
        found = _normed(emitter, apart, list(range(2, rank + 1)), node["eps"], per_channel)
        found = emitter.reshaped(found, dims)
        return found if len(node.stated) == 1 else [found, None, None]
    found = emitter.emit(
        relax.op.nn.group_norm(source, gamma, beta, groups, 1, list(range(2, rank)), node["eps"])
    )
    return found if len(node.stated) == 1 else [found, None, None]


def _normed(
    emitter: Emitter, source: relax.Expr, axes: Sequence[int], eps: float, affine: Sequence[relax.Expr]
) -> relax.Expr:
    """A norm written out, since TVM's operators of norms have no float64."""
    emit = emitter.emit
    mean = emit(relax.op.mean(source, axes, keepdims=True))
    variance = emit(relax.op.variance(source, axes, keepdims=True))
    deviation = emit(relax.op.sqrt(emit(relax.op.add(variance, relax.const(eps, "float64")))))
    found = emit(relax.op.divide(emit(relax.op.subtract(source, mean)), deviation))
    gamma, beta = affine
    return emit(relax.op.add(emit(relax.op.multiply(found, gamma)), beta))


def _constant(shape: Sequence[int], number: int, dtype: str) -> relax.Expr:
    return relax.const(np.full(shape, number, "float32" if dtype == "bfloat16" else dtype), dtype)
