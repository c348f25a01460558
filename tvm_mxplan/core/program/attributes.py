"""The kinds of steps: typed attributes, one class for each kind, and the table of their names.

A class's docstring says the operands that a step of its kind reads, by role, and what it writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..policies import ConvolutionAlgorithm
from .sequences import Attention, Recurrent


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
    F(2x2, 5x5)) or of 4x4 (``winograd_f4``: F(4x4, 3x3)), where the backend has it.
    ``preferred``: the implementation to take of several that the library has for the direct algorithm, by
    its name; '' leaves the choice to the library, and so does a name that it has not got on this machine.
    """

    algorithm: ConvolutionAlgorithm = "direct"
    preferred: str = ""


@dataclass(frozen=True)
class Deconvolution(_Filters):
    """As Convolution, weights [G?, O, I, k...]; output padding follows from dst's shape."""


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
    """src, scale [C], shift [C] -> dst, batch_mean [C], batch_variance [C], by which it is normalized."""

    epsilon: float


@dataclass(frozen=True)
class BatchNormalizationBackward:
    """src, gradient, mean [C], variance [C], scale [C] -> dst, scale_gradient [C], shift_gradient [C].

    Of a batch normalization in training, whose batch had that mean and variance.
    """

    epsilon: float


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

    Those that it has not: ceil, erf, floor, negative, rsqrt, sign, trunc.
    """

    algorithm: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class Binary:
    """src, src1 (same rank, broadcast) -> dst, of one type; ``algorithm``: add, sub, mul, div, min, max."""

    algorithm: str


@dataclass(frozen=True)
class PReLU:
    """src, weights (same rank, broadcast) -> dst."""


@dataclass(frozen=True)
class Reduction:
    """src -> dst with reduced dimensions kept as 1; ``algorithm``: mean, sum, max, min, mul."""

    algorithm: str


@dataclass(frozen=True)
class Concat:
    """src, src, ... -> dst."""

    axis: int


@dataclass(frozen=True)
class Shuffle:
    """src -> dst; channels seen as [groups, C / groups] are transposed: ShuffleNet's channel shuffle."""

    axis: int
    groups: int


@dataclass(frozen=True)
class Resampling:
    """src -> dst, spatial axes scaled, half-pixel centres; ``algorithm``: nearest or linear."""

    algorithm: str


@dataclass(frozen=True)
class Pad:
    """src -> dst with constant ``value`` around; ``begin`` has one entry for each axis."""

    begin: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class Slice:
    """src -> dst, a box of dst's shape that starts at ``begin``."""

    begin: tuple[int, ...]


@dataclass(frozen=True)
class StridedSlice:
    """src -> dst, every ``steps``-th element of each axis from ``begin`` on.

    Steps below 0 go backwards; one of 0 takes the same element again and again.
    """

    begin: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Gather:
    """src [A..., extent, B...], indices [I...] of int32 or int64 -> dst [A..., I..., B...].

    Negative indices count from the end; what is out of bounds is an error.
    """

    axis: int


@dataclass(frozen=True)
class ExtremeIndex:
    """src -> dst of int32 or int64: places along ``axis``, which is kept as 1, of its extreme elements.

    ``algorithm``: max or min; of equal elements the first is taken, with ``last`` the last.  One that is no
    number is larger and smaller than all that are.
    """

    algorithm: str
    axis: int
    last: bool


@dataclass(frozen=True)
class Ranking:
    """src -> dst, order? of int32 or int64: the first elements along ``axis``, sorted, and their places.

    There are as many as dst has: the largest ones, the largest first, or the smallest ones.  Equal ones stay
    in their order; what is no number is larger than all that are.
    """

    axis: int
    largest: bool


@dataclass(frozen=True)
class Select:
    """condition of bool, src, src1 (same rank, broadcast) -> dst: src where it holds, else src1."""


@dataclass(frozen=True)
class Compare:
    """src, src1 (same rank, broadcast) -> dst of bool.

    ``algorithm``: equal, not_equal, less, less_equal, greater, greater_equal.
    """

    algorithm: str


@dataclass(frozen=True)
class Cast:
    """src -> dst of another element type."""


@dataclass(frozen=True)
class Resize:
    """src -> dst, spatial axes of other extents.

    Attributes
    ----------
    algorithm : nearest, linear or cubic.
    coordinates : half_pixel, pytorch_half_pixel, align_corners, asymmetric or tf_half_pixel_for_nn: where a
        point of dst lies in src.
    rounding : of nearest: floor, ceil, round_prefer_floor, round_prefer_ceil, round_prefer_even.
    alpha : of cubic: the spline's coefficient.
    inside_only : of cubic: points outside of src count nothing, and the others for them.
    """

    algorithm: str
    coordinates: str
    rounding: str
    alpha: float
    inside_only: bool


@dataclass(frozen=True)
class Reorder:
    """src -> dst of the same logical shape in another layout (or a plain copy)."""


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
    | Pooling
    | PoolingBackward
    | BatchNormalization
    | BatchNormalizationTraining
    | BatchNormalizationBackward
    | LayerNormalization
    | LRN
    | Softmax
    | Eltwise
    | Binary
    | PReLU
    | Reduction
    | Recurrent
    | Attention
    | Concat
    | Shuffle
    | Resampling
    | Pad
    | Slice
    | StridedSlice
    | Gather
    | ExtremeIndex
    | Ranking
    | Select
    | Compare
    | Cast
    | Resize
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
    "pooling": Pooling,
    "pooling_backward": PoolingBackward,
    "batch_normalization": BatchNormalization,
    "batch_normalization_training": BatchNormalizationTraining,
    "batch_normalization_backward": BatchNormalizationBackward,
    "layer_normalization": LayerNormalization,
    "lrn": LRN,
    "softmax": Softmax,
    "eltwise": Eltwise,
    "binary": Binary,
    "prelu": PReLU,
    "reduction": Reduction,
    "recurrent": Recurrent,
    "attention": Attention,
    "concat": Concat,
    "shuffle": Shuffle,
    "resampling": Resampling,
    "pad": Pad,
    "slice": Slice,
    "strided_slice": StridedSlice,
    "gather": Gather,
    "extreme_index": ExtremeIndex,
    "ranking": Ranking,
    "select": Select,
    "compare": Compare,
    "cast": Cast,
    "resize": Resize,
    "reorder": Reorder,
    "quantization": Quantization,
    "dynamic_quantization": DynamicQuantization,
}
KIND_OF = {cls: kind for kind, cls in STEP_KINDS.items()}
