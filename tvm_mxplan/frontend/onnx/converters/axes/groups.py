"""GroupNormalization of types, and in types, that TVM's importer lacks."""

from __future__ import annotations

import onnx
from tvm import relax

from ...dimensions.dims import Dim, product
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant
from ..table import converts


@converts("GroupNormalization")
def _group_normalization(emitter: Emitter, node: Node) -> Value:
    """Version 18 has a scale and a shift for a group, version 21 for a channel and a type to compute in."""
    data = emitter.tensor(node.input(0))
    dims, dtype = emitter.shape(data), dtype_of(data)
    by_group = node.opset < 21
    stated = node.attribute("stash_type", onnx.TensorProto.FLOAT)
    if (dtype == "float32" if by_group else stated == onnx.TensorProto.FLOAT) or not isinstance(dims[1], int):
        raise NotTaken
    double = dtype == "float64" if by_group else stated == onnx.TensorProto.DOUBLE
    inner, emit = "float64" if double else "float32", emitter.emit

    def as_type(value: relax.Expr, to: str) -> relax.Expr:
        return value if dtype_of(value) == to else emit(relax.op.astype(value, to))

    groups = node.attributes["num_groups"]
    inside: list[Dim] = [dims[1] // groups, *dims[2:]]
    parts = as_type(emitter.reshaped(data, [dims[0], groups, product(inside)]), inner)
    mean = emit(relax.op.mean(parts, 2, keepdims=True))
    centred = emit(relax.op.subtract(parts, mean))
    variance = emit(relax.op.mean(relax.op.multiply(centred, centred), 2, keepdims=True))
    epsilon = constant(node.attribute("epsilon", 1e-5), inner)
    normal = emit(relax.op.multiply(centred, relax.op.rsqrt(relax.op.add(variance, epsilon))))
    if not by_group:
        normal = as_type(emitter.reshaped(normal, dims), dtype)
    row = [groups, 1] if by_group else [dims[1], *[1] * (len(dims) - 2)]
    scale, shift = (
        as_type(emitter.reshaped(emitter.tensor(node.input(at)), row), dtype_of(normal)) for at in (1, 2)
    )
    result = emit(relax.op.add(relax.op.multiply(normal, scale), shift))
    return as_type(emitter.reshaped(result, dims), dtype)
