"""The kinds of steps: typed attributes, one class for each kind, and the table of their names.

A class's docstring says the operands that a step of its kind reads, by role, and what it writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..policies import ConvolutionAlgorithm
from .kinds.gates import SqueezeExcite
from .kinds.movement import (
    Cast,
    Compare,
    Concat,
    CumulativeSum,
    ExtremeIndex,
    Gather,
    GatherElements,
    GatherNd,
    GatherPlaces,
    GridSample,
    Pad,
    Put,
    Ranking,
    Reorder,
    Resampling,
    Resize,
    Scatter,
    ScatterElements,
    Select,
    Shuffle,
    Slice,
    StridedSlice,
)
from .kinds.sequences import Attention, Recurrent, RecurrentBackward, RecurrentTraining, Rotary


@dataclass(frozen=True)
class _Filters:
    """Filters that slide over an image: the numbers that a convolution and its gradients share."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]  # begin of each spatial axis, then end of each
    dilation: tuple[int, ...]  # 1 is dense
    groups: int


@dataclass(frozen=True)
class _Windows:
    """Windows of a pool and of its gradient."""

    algorithm: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]  # begin of each spatial axis
    dilation: tuple[int, ...]  # 1 is dense


@dataclass(frozen=True)
class Convolution(_Filters):
    """src, weights [G?, O, I, k...] (a leading group axis iff ``groups`` > 1), bias? -> dst.

    ``algorithm`` other than ``direct``: Winograd's with tiles of 2x2 (``winograd_f2``: F(2x2, 3x3) and
    F(2x2, 5x5)) or of 4x4 (``winograd_f4``: F(4x4, 3x3)), where the backend has it.  It transforms weights
    that are no constant in each call, out of whatever layout they stand in.
    ``preferred``: the implementation to take of several that the library has for the direct algorithm, by
    its name; '' leaves the choice to the library, and so does a name that it lacks on this machine.
    """

    algorithm: ConvolutionAlgorithm = "direct"
    preferred: str = ""


@dataclass(frozen=True)
class Deconvolution(_Filters):
    """As Convolution, weights [G?, O, I, k...]; output padding follows from dst's shape.

    ``algorithm`` is Winograd's only where strides are 1: a convolution by filters turned by 180 degrees.
    """

    algorithm: ConvolutionAlgorithm = "direct"


@dataclass(frozen=True)
class ConvolutionBackwardWeights(_Filters):
    """src, gradient -> dst [G?, O, I, k...]: of a convolution's weights, from that of what it writes.

    Attributes are the convolution's; ``gradient`` has the shape of its result.
    """


@dataclass(frozen=True)
class MatMul:
    """src [..., M, K], weights [..., K, N], bias? (rank of dst, broadcast) -> dst [..., M, N].

    All three have the same rank; batch dimensions broadcast.  A transposed operand is a value with a
    permuted layout, never an attribute.
    """


@dataclass(frozen=True)
class InnerProduct:
    """src [N, I], weights [O, I], bias? [O] -> dst [N, O]."""


@dataclass(frozen=True)
class FewBitsProduct:
    """src [..., K], numbers [1, N, W] of int32, scales [1, N, B], zero_points? [1, N, B] -> dst [..., N].

    The product of rows with columns n of ``scales[n, b] * (number[n, k] - zero_points[n, b])``, where b is
    the block of k.  A word of ``numbers`` holds 32 / ``bits`` numbers of a column, in the order of the depth,
    the lowest bits first; ``block`` of them, a multiple of 16, share a scale.  Zero points are uint8 or
    float32; without them, half of the numbers that the bits have stands for 0.
    """

    bits: int
    block: int


@dataclass(frozen=True)
class GroupedProduct:
    """src [M, K], weights [G, K, N], ends [G] of int32 -> dst [M, N].

    Row m is multiplied by the first matrix g with ``m < ends[g]``; those behind all ends are 0.
    """


@dataclass(frozen=True)
class Pooling(_Windows):
    """src -> dst; ``algorithm``: max, avg_include_padding, avg_exclude_padding.

    The end padding is what dst's shape asks for (ceil mode), not stored.
    """


@dataclass(frozen=True)
class PoolingBackward(_Windows):
    """src, gradient -> dst: of what a pool reads, from that of what it writes; attributes as Pooling's.

    Of equal maxima of a window the first takes its gradient.
    """


@dataclass(frozen=True)
class BatchNormalizationTraining:
    """src, scale [C], shift [C] -> dst, batch_mean [C], batch_variance [C], by which it is normalized.

    ``inverse``: 1 / sqrt(variance + epsilon) stands in the place of the variance, as some libraries have it.
    """

    epsilon: float
    inverse: bool = False


@dataclass(frozen=True)
class BatchNormalizationBackward:
    """src, gradient, mean [C], variance [C], scale [C] -> dst, scale_gradient [C], shift_gradient [C].

    Of a batch normalization in training, whose batch had that mean and variance; ``inverse`` as there.
    """

    epsilon: float
    inverse: bool = False


@dataclass(frozen=True)
class BatchNormalization:
    """src, mean [C], variance [C], scale [C], shift [C] -> dst, with ``relu`` fused on request."""

    epsilon: float
    relu: bool


@dataclass(frozen=True)
class LayerNormalization:
    """src, scale? [last], shift? [last] -> dst; statistics over the last axis."""

    epsilon: float


@dataclass(frozen=True)
class LayerNormalizationBackward:
    """src, gradient, scale [last] -> dst, scale_gradient [last], shift_gradient [last], over the last axis.

    Statistics are worked out again from src.
    """

    epsilon: float


@dataclass(frozen=True)
class RmsNormalization:
    """src, scale? [last] -> dst: divided by the root of the mean square over the last axis."""

    epsilon: float


@dataclass(frozen=True)
class LRN:
    """src -> dst, across channels: y = x / (k + alpha / size * sum(x^2)) ^ beta."""

    size: int
    alpha: float
    beta: float
    k: float


@dataclass(frozen=True)
class Softmax:
    """src -> dst; ``algorithm``: softmax or log_softmax."""

    algorithm: str
    axis: int


@dataclass(frozen=True)
class Eltwise:
    """src -> dst; algorithms as oneDNN names them without the prefix (relu, clip_v2, gelu_erf, ...).

    Those that oneDNN lacks: ceil, cos, erf, floor, negative, rsqrt, sign, sin, trunc.
    """

    algorithm: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class Binary:
    """src, src1 (same rank, broadcast) -> dst, of one type; ``algorithm``: add, sub, mul, div, min, max.

    Quotients of integers are rounded down, and 0 where the divisor is.
    """

    algorithm: str


@dataclass(frozen=True)
class PReLU:
    """src, weights (same rank, broadcast) -> dst."""


@dataclass(frozen=True)
class Reduction:
    """src -> dst with reduced dimensions kept as 1; ``algorithm``: mean, sum, max, min, mul."""

    algorithm: str


@dataclass(frozen=True)
class Quantization:
    """src, src_scale?, src_zero_point?, dst_scale?, dst_zero_point? -> dst of the same shape.

    Converts between real numbers and integers that stand for scale * (integer - zero point), or between
    integers of two scales; a side of integers has a scale.  Rounds to the nearest, saturates.  Vectors of
    scales and zero points stand along ``axis``.
    """

    axis: int


@dataclass(frozen=True)
class DynamicQuantization:
    """src -> dst of uint8, made_scale [1], made_zero_point [1]: integers by numbers that follow from src.

    The scale is a 255th of the way from the least to the largest element, 0 counted among them (1 where that
    is no way), the zero point int32.  Rounds to the nearest, saturates.
    """


Attributes: TypeAlias = (
    Convolution
    | Deconvolution
    | ConvolutionBackwardWeights
    | MatMul
    | InnerProduct
    | FewBitsProduct
    | GroupedProduct
    | Pooling
    | PoolingBackward
    | BatchNormalization
    | BatchNormalizationTraining
    | BatchNormalizationBackward
    | LayerNormalization
    | LayerNormalizationBackward
    | RmsNormalization
    | SqueezeExcite
    | LRN
    | Softmax
    | Eltwise
    | Binary
    | PReLU
    | Reduction
    | Recurrent
    | RecurrentTraining
    | RecurrentBackward
    | Attention
    | Rotary
    | Concat
    | Shuffle
    | Resampling
    | Pad
    | Slice
    | StridedSlice
    | Gather
    | GatherElements
    | GatherNd
    | GatherPlaces
    | Put
    | Scatter
    | ScatterElements
    | CumulativeSum
    | ExtremeIndex
    | Ranking
    | Select
    | Compare
    | Cast
    | Resize
    | GridSample
    | Reorder
    | Quantization
    | DynamicQuantization
)

STEP_KINDS: dict[str, type] = {
    "convolution": Convolution,
    "deconvolution": Deconvolution,
    "convolution_backward_weights": ConvolutionBackwardWeights,
    "matmul": MatMul,
    "inner_product": InnerProduct,
    "few_bits_product": FewBitsProduct,
    "grouped_product": GroupedProduct,
    "pooling": Pooling,
    "pooling_backward": PoolingBackward,
    "batch_normalization": BatchNormalization,
    "batch_normalization_training": BatchNormalizationTraining,
    "batch_normalization_backward": BatchNormalizationBackward,
    "layer_normalization": LayerNormalization,
    "layer_normalization_backward": LayerNormalizationBackward,
    "rms_normalization": RmsNormalization,
    "squeeze_excite": SqueezeExcite,
    "lrn": LRN,
    "softmax": Softmax,
    "eltwise": Eltwise,
    "binary": Binary,
    "prelu": PReLU,
    "reduction": Reduction,
    "recurrent": Recurrent,
    "recurrent_training": RecurrentTraining,
    "recurrent_backward": RecurrentBackward,
    "attention": Attention,
    "rotary": Rotary,
    "concat": Concat,
    "shuffle": Shuffle,
    "resampling": Resampling,
    "pad": Pad,
    "slice": Slice,
    "strided_slice": StridedSlice,
    "gather": Gather,
    "gather_elements": GatherElements,
    "gather_nd": GatherNd,
    "gather_places": GatherPlaces,
    "put": Put,
    "scatter": Scatter,
    "scatter_elements": ScatterElements,
    "cumulative_sum": CumulativeSum,
    "extreme_index": ExtremeIndex,
    "ranking": Ranking,
    "select": Select,
    "compare": Compare,
    "cast": Cast,
    "resize": Resize,
    "grid_sample": GridSample,
    "reorder": Reorder,
    "quantization": Quantization,
    "dynamic_quantization": DynamicQuantization,
}
KIND_OF = {cls: kind for kind, cls in STEP_KINDS.items()}
