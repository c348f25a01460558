"""Products of matrices of types whose sums or scales TVM's importer computes too narrowly."""

from __future__ import annotations

from tvm import relax

from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant, is_integer
from ..table import converts


@converts("MatMul")
def _narrow_product(emitter: Emitter, node: Node) -> Value:
    """Products of 16 bits with sums in float32; TVM's own sums are as narrow as the operands."""
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    if dtype not in ("float16", "bfloat16"):
        raise NotTaken
    product = emitter.emit(relax.op.matmul(left, right, out_dtype="float32"))
    return emitter.emit(relax.op.astype(product, dtype))


@converts("Gemm")
def _whole_product(emitter: Emitter, node: Node) -> Value:
    """Whole numbers with factors that are none: scaled in float64 behind the product, then towards zero."""
    factors = [node.attribute(name, 1.0) for name in ("alpha", "beta")]
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    if not is_integer(dtype) or all(factor == int(factor) for factor in factors):
        raise NotTaken
    emit = emitter.emit
    if node.attribute("transA", 0):
        left = emit(relax.op.permute_dims(left, [1, 0]))
    if node.attribute("transB", 0):
        right = emit(relax.op.permute_dims(right, [1, 0]))
    terms = [emit(relax.op.matmul(left, right))]
    if node.input(2) is not None:
        terms.append(emitter.tensor(node.input(2)))
    scaled = [
        emit(relax.op.multiply(relax.op.astype(term, "float64"), constant(factor, "float64")))
        for term, factor in zip(terms, factors, strict=False)
    ]
    total = scaled[0] if len(scaled) == 1 else emit(relax.op.add(*scaled))
    return emit(relax.op.astype(relax.op.trunc(total), dtype))
