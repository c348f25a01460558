"""Every kind of step in float64: one function for each, by family, independent of any library of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import Array, Estimate, rounded_to
from . import (
    attention,
    choice,
    elementwise,
    matmul,
    movement,
    normalization,
    order,
    quantized,
    recurrent,
    recurrent_training,
    reduction,
    training,
)
from .images import grid_sample, resize
from .operands import Operands
from .windows import convolution, pooling, squeeze_excite

_FLOAT = np.dtype(np.float32)

REFERENCES: dict[type, Callable[[Any, Operands], Estimate]] = {
    ir.Convolution: convolution.convolution,
    ir.Deconvolution: convolution.deconvolution,
    ir.ConvolutionBackwardWeights: convolution.backward_weights,
    ir.MatMul: matmul.matmul,
    ir.InnerProduct: matmul.inner_product,
    ir.FewBitsProduct: matmul.few_bits_product,
    ir.GroupedProduct: matmul.grouped_product,
    ir.Pooling: pooling.pooling,
    ir.PoolingBackward: training.pooling_backward,
    ir.BatchNormalization: normalization.batch_normalization,
    ir.LayerNormalization: normalization.layer_normalization,
    ir.RmsNormalization: normalization.rms_normalization,
    ir.Rotary: attention.rotary,
    ir.SqueezeExcite: squeeze_excite.squeeze_excite,
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
    ir.StridedSlice: movement.strided_slice,
    ir.Gather: movement.gather,
    ir.GatherElements: movement.gather_elements,
    ir.GatherNd: movement.gather_nd,
    ir.GatherPlaces: movement.gather_places,
    ir.Put: movement.put,
    ir.Scatter: movement.scatter,
    ir.ScatterElements: movement.scatter_elements,
    ir.CumulativeSum: reduction.cumulative_sum,
    ir.ExtremeIndex: order.extreme_index,
    ir.Select: choice.select,
    ir.Compare: choice.compare,
    ir.Cast: choice.cast,
    ir.Resize: resize.resize,
    ir.GridSample: grid_sample.grid_sample,
    ir.Reorder: movement.reorder,
    ir.Quantization: quantized.quantization,
}

SEVERAL: dict[type, Callable[[Any, Operands], dict[str, Estimate]]] = {
    ir.Attention: attention.attention,
    ir.Recurrent: recurrent.recurrent,
    ir.LayerNormalizationBackward: training.layer_normalization_backward,
    ir.RecurrentTraining: recurrent_training.forward,
    ir.RecurrentBackward: recurrent_training.backward,
    ir.Ranking: order.ranking,
    ir.DynamicQuantization: quantized.dynamic_quantization,
    ir.BatchNormalizationTraining: training.batch_normalization,
    ir.BatchNormalizationBackward: training.batch_normalization_backward,
}
"""Kinds with results beside dst: all of them, by role."""

# From the post-op, what it is applied to, the tensor that a binary reads or a sum adds, and the operands.
POST_OPS: dict[type, Callable[[Any, Estimate, Any, Operands], Estimate]] = {
    ir.EltwisePostOp: lambda p, estimate, _, __: elementwise.apply_eltwise(
        estimate, p.algorithm, p.alpha, p.beta
    ),
    ir.BinaryPostOp: lambda p, estimate, other, _: elementwise.apply_binary(estimate, p.algorithm, other),
    ir.SumPostOp: lambda p, estimate, added, _: elementwise.apply_sum(estimate, p.scale, added),
    ir.DepthwisePostOp: lambda p, estimate, _, operands: convolution.depthwise(p, estimate, operands),
}


def results_of(attrs: ir.Attributes, operands: Operands) -> dict[str, Estimate]:
    """Computes a step's expected results, without post-ops, by role; some may not be written by the step."""
    several = SEVERAL.get(type(attrs))
    return several(attrs, operands) if several else {"dst": REFERENCES[type(attrs)](attrs, operands)}


def short_roles(operands: Mapping[str, Sequence[Array]]) -> frozenset[str]:
    """The roles whose numbers came in a type shorter than float32."""
    return frozenset(role for role, arrays in operands.items() if any(map(_is_short, arrays)))


def _is_short(array: Array) -> bool:
    return np.asarray(array).dtype.name in ("bfloat16", "float16")


def evaluate(
    step: ir.Step,
    shape: tuple[int, ...],
    operands: Mapping[str, Sequence[Array]],
    post_operands: Sequence[Array | None],
    dtype: np.dtype[Any] = _FLOAT,
) -> dict[str, Estimate]:
    """Computes the expected results of ``step``, by role; what it does not write may be among it.

    Parameters
    ----------
    shape : logical shape of ``dst``.
    operands : by role, in any type.
    post_operands : for each post-op, what a binary reads, or what the destination held for a sum.
    dtype : of its result, and of what stands in front of a depthwise post-op.
    """
    read = {role: [np.asarray(array, np.float64) for array in arrays] for role, arrays in operands.items()}
    doubles = quantized.real(step, read)
    given = Operands(doubles, shape, dtype, short_roles(operands))
    with np.errstate(all="ignore"):
        if type(step.attrs) in SEVERAL:
            return results_of(step.attrs, given)
        root = given
        if step.has_depthwise:
            assert isinstance(step.attrs, ir.Convolution)
            root = Operands(doubles, convolution.before_depthwise(step.attrs, given))
        estimate = results_of(step.attrs, root)["dst"]
        if isinstance(step.attrs, ir.Cast):
            estimate = choice.cast_to(dtype, estimate)
        for post_op, operand in zip(step.post_ops, post_operands, strict=True):
            other = None if operand is None else np.asarray(operand, np.float64)
            if isinstance(post_op, ir.DepthwisePostOp):
                estimate = rounded_to(dtype, estimate)
            estimate = POST_OPS[type(post_op)](post_op, estimate, other, given)
        estimate = quantized.stored(step, read, estimate, dtype)
    return {"dst": estimate}
