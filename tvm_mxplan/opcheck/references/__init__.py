"""Every kind of step in float64: one function for each, by family, independent of any library of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_mxplan.core import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate
from . import convolution, elementwise, matmul, movement, normalization, pooling, reduction
from .operands import Operands

REFERENCES: dict[type, Callable[[Any, Operands], Estimate]] = {
    ir.Convolution: convolution.convolution,
    ir.Deconvolution: convolution.deconvolution,
    ir.MatMul: matmul.matmul,
    ir.InnerProduct: matmul.inner_product,
    ir.Pooling: pooling.pooling,
    ir.BatchNormalization: normalization.batch_normalization,
    ir.LayerNormalization: normalization.layer_normalization,
    ir.LRN: normalization.lrn,
    ir.Softmax: reduction.softmax,
    ir.Reduction: reduction.reduction,
    ir.Eltwise: elementwise.eltwise,
    ir.Binary: elementwise.binary,
    ir.PReLU: elementwise.prelu,
    ir.Concat: movement.concat,
    ir.Shuffle: movement.shuffle,
    ir.Resampling: movement.resampling,
    ir.Pad: movement.pad,
    ir.Slice: movement.slice_,
    ir.Reorder: movement.reorder,
}


def evaluate(
    step: ir.Step,
    shape: tuple[int, ...],
    operands: Mapping[str, Sequence[Array]],
    post_operands: Sequence[Array | None],
) -> Estimate:
    """What ``step`` should give.

    Parameters
    ----------
    shape : logical shape of its result.
    operands : by role, in any type.
    post_operands : for each post-op, what a binary reads, or what the destination held for a sum.
    """
    doubles = {role: [np.asarray(array, np.float64) for array in arrays] for role, arrays in operands.items()}
    with np.errstate(all="ignore"):
        estimate = REFERENCES[type(step.attrs)](step.attrs, Operands(doubles, shape))
        for post_op, operand in zip(step.post_ops, post_operands, strict=True):
            estimate = _apply(post_op, estimate, operand)
    return estimate


def _apply(post_op: ir.PostOp, estimate: Estimate, operand: Array | None) -> Estimate:
    if isinstance(post_op, ir.EltwisePostOp):
        return elementwise.apply_eltwise(estimate, post_op.algorithm, post_op.alpha, post_op.beta)
    assert operand is not None
    other = np.asarray(operand, np.float64)
    if isinstance(post_op, ir.BinaryPostOp):
        return elementwise.apply_binary(estimate, post_op.algorithm, other)
    added = post_op.scale * other
    error = estimate.error + UNIT_ROUNDOFF * np.abs(added)
    return Estimate(estimate.value + added, error).rounded()
