"""The layouts that oneDNN's primitives are asked for."""

from __future__ import annotations

from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.program import program as ir

_IMAGES = (
    ir.Convolution,
    ir.Deconvolution,
    ir.Pooling,
    ir.LRN,
    ir.Resampling,
    ir.BatchNormalization,
    ir.BatchNormalizationTraining,
    ir.BatchNormalizationBackward,
    ir.PoolingBackward,
    ir.Shuffle,
)
_FOLLOWS = (
    ir.Eltwise,
    ir.Binary,
    ir.Concat,
    ir.PReLU,
    ir.Pad,
    ir.Slice,
    ir.Reduction,
    ir.Softmax,
    ir.SqueezeExcite,
)


def layout_rules(block: int) -> LayoutRules:
    """The rules for vectors that hold ``block`` numbers.

    An inner product's weights are packed in the order of its source.  A convolution of an image with few
    channels reads it plain, and one that gives few writes it so: blocks would be padding for the most part.
    """
    return LayoutRules(
        block,
        images=_IMAGES,
        follows=_FOLLOWS,
        sources=(ir.InnerProduct,),
        mixed=(ir.Convolution,),
        plain_results=(ir.Convolution, ir.Deconvolution),
        casts=True,
        copies=True,
    )
