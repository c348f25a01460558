"""The region program: what one offloaded region computes, in which layouts, at which bytes.

It is the single value that the stages after partitioning share.  ``passes/region`` builds it from a
Relax region and refines it (post-ops, layouts, memory), the backend's runtime executes it, the report
prints it.  It knows no TVM and no library; ``codec`` writes and reads it as bytes.

    values   v0 input0 f32[1,3,224,224] abcd      v1 constant0 f32[64,3,7,7] abcd   v2 local f32[..] acdb
    steps    convolution conv1 {src: v0, weights: v1, dst: v2} strides=(2,2) ... post_ops=[eltwise relu]

Rules
-----
- Values are numbered by their place in ``values``; steps run in order and each local or output value is
  written by exactly one step before it is read.
- A step has one result in the role ``dst``, and others in roles of their own where its kind has several
  (``RESULT_ROLES``).  Results of one step share no bytes.
- A physical layout is a *tag*: a permutation of the first letters of the alphabet, outermost first, where
  an upper-case letter is a blocked dimension whose inner blocks follow as number and letter (oneDNN's
  notation).  For activations: ``abcd`` = nchw, ``acdb`` = nhwc, ``aBcd16b`` = nChw16c.  Tails of blocked
  dimensions are zero.  ``any`` lets the backend choose and occurs only in queries.
- The tensor handed over for an input or output has the physical shape of its value's layout: the stored
  order read as dimensions, padding included.  Plain ones have the logical shape.
- Constants hold plain, dense data in the layout of their value.  Constants in the role ``weights`` are
  prepacked by the runtime into whatever the primitive asks for.
- A value with ``alias_of`` views the bytes of an earlier value of any kind; it owns none of its own and
  is written when the other is (a reshape, a slice), unless it is itself a step's ``dst`` (in place, or a
  piece of a concat).
- ``offset`` is a byte offset into the arena, or -1 where the runtime has to plan (symbolic shapes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from ..policies import CONVOLUTION_ALGORITHMS as CONVOLUTION_ALGORITHMS
from ..policies import ConvolutionAlgorithm
from .dims import Dim, Shape

VERSION = 5

ValueKind = Literal["input", "output", "constant", "local"]
VALUE_KINDS: tuple[ValueKind, ...] = ("input", "output", "constant", "local")


@dataclass(frozen=True)
class Value:
    """One tensor of a region.

    Attributes
    ----------
    index : number among the region's inputs, outputs or constants; -1 for locals.
    layout : physical layout tag (see the module's rules).
    alias_of : id of the earlier value whose bytes this one views, or -1.
    alias_offset : byte offset into that value; an integer or a symbolic expression.
    offset : arena byte offset of a local, -1 if not planned.
    nbytes : bytes the backend asks for, padding included; -1 if not known yet.
    """

    name: str
    shape: Shape
    dtype: str
    kind: ValueKind
    layout: str
    index: int = -1
    alias_of: int = -1
    alias_offset: Dim = 0
    offset: int = -1
    nbytes: int = -1


RecurrentCell = Literal["lstm", "gru", "gru_linear", "tanh", "relu"]
RECURRENT_CELLS: tuple[RecurrentCell, ...] = ("lstm", "gru", "gru_linear", "tanh", "relu")
AttentionCausal = Literal["no", "first", "last"]
ATTENTION_CAUSAL: tuple[AttentionCausal, ...] = ("no", "first", "last")
RecurrentDirection = Literal["forward", "reverse", "both"]
RECURRENT_DIRECTIONS: tuple[RecurrentDirection, ...] = ("forward", "reverse", "both")


# --- typed attributes, one class for each kind of step -----------------------------------------------


@dataclass(frozen=True)
class Convolution:
    """src, weights [G?, O, I, k...] (a leading group axis iff ``groups`` > 1), bias? -> dst.

    ``algorithm`` other than ``direct``: Winograd's with tiles of 2x2 (``winograd_f2``: F(2x2, 3x3) and
    F(2x2, 5x5)) or of 4x4 (``winograd_f4``: F(4x4, 3x3)), where the backend has it.
    ``preferred``: the implementation to take of several that the library has for the direct algorithm, by
    its name; '' leaves the choice to the library, and so does a name that it has not got on this machine.
    """

    strides: tuple[int, ...]
    padding: tuple[int, ...]  # begin of each spatial axis, then end of each
    dilation: tuple[int, ...]  # 1 is dense
    groups: int
    algorithm: ConvolutionAlgorithm = "direct"
    preferred: str = ""


@dataclass(frozen=True)
class Deconvolution:
    """As Convolution, weights [G?, O, I, k...]; output padding follows from dst's shape."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


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
class Pooling:
    """src -> dst; ``algorithm``: max, avg_include_padding, avg_exclude_padding.

    The end padding is what dst's shape asks for (ceil mode), not stored.
    """

    algorithm: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]  # begin of each spatial axis
    dilation: tuple[int, ...]  # 1 is dense


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
class Recurrent:
    """src [T, N, I] -> dst [T, N, D * H]: a recurrent layer over T steps, in D directions.

    weights [1, D, I, G, H], recurrence [1, D, H, G, H], bias? [1, D, B, H], peepholes? [1, D, 3, H] (of the
    gates in, forget, out), hidden? and cell? [1, D, N, H] (zeros where they are missing, both or none);
    further results last_hidden? and last_cell? [1, D, N, H].  The first axis counts layers.

    ``cell`` says what G and B count:

        lstm       4, 4   gates in, forget, candidate, out
        gru        3, 3   gates update, reset, candidate
        gru_linear 3, 4   the same, reset gating the recurrent product; its bias apart, as the fourth
        tanh, relu 1, 1   plain cells with that activation

    ``direction``: forward, reverse, or both (forward first, their outputs side by side).
    """

    cell: RecurrentCell
    direction: RecurrentDirection


@dataclass(frozen=True)
class Attention:
    """src [N, H, S, D], key [N, G, T, D], value [N, G, T, W], mask? (broadcast to [N, H, S, T]) -> dst [N, S, H, W].

    Scores are ``scale`` times the products of queries and keys, and the mask is added to them; a softmax over
    the keys weights the values.  H / G heads of queries in a row share one of keys and values.

    Attributes
    ----------
    causal : the keys that a query sees: all (``no``); those up to its own place, counted from the first key
        (``first``), or with the last query at the last key (``last``).
    nan_is_zero : weights that are NaN, as those of queries that see nothing, count as 0.
    """

    scale: float
    causal: AttentionCausal = "no"
    nan_is_zero: bool = False


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
    """src -> dst, every ``steps``-th element of each axis from ``begin`` on; those below 0 go backwards."""

    begin: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Gather:
    """src [A..., extent, B...], indices [I...] of int32 or int64 -> dst [A..., I..., B...].

    Negative indices count from the end; what is out of bounds is an error.
    """

    axis: int


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


Attributes: TypeAlias = (
    Convolution
    | Deconvolution
    | MatMul
    | InnerProduct
    | Pooling
    | BatchNormalization
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
    | Select
    | Compare
    | Cast
    | Resize
    | Reorder
)

STEP_KINDS: dict[str, type] = {
    "convolution": Convolution,
    "deconvolution": Deconvolution,
    "matmul": MatMul,
    "inner_product": InnerProduct,
    "pooling": Pooling,
    "batch_normalization": BatchNormalization,
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
    "select": Select,
    "compare": Compare,
    "cast": Cast,
    "resize": Resize,
    "reorder": Reorder,
}
KIND_OF = {cls: kind for kind, cls in STEP_KINDS.items()}


# --- post-ops ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EltwisePostOp:
    """dst = algorithm(dst; alpha, beta)."""

    algorithm: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class BinaryPostOp:
    """dst = dst (algorithm) value, broadcast to dst's shape."""

    algorithm: str
    value: int


@dataclass(frozen=True)
class SumPostOp:
    """dst = dst + what dst's bytes held before.

    dst is an alias of the value that is added; an output that is none adds what the caller's tensor holds.
    """

    scale: float = 1.0


@dataclass(frozen=True)
class DepthwisePostOp:
    """dst = depthwise convolution of dst, whose size along both spatial axes it may change.

    Square ``kernel``, the same ``stride`` and ``padding`` along both axes; the step's operands
    ``depthwise_weights`` and ``depthwise_bias`` (which may be missing) belong to it.
    """

    kernel: int
    stride: int
    padding: int


PostOp: TypeAlias = EltwisePostOp | BinaryPostOp | SumPostOp | DepthwisePostOp


# --- steps and the whole ------------------------------------------------------------------------------


RESULT_ROLES = ("dst", "last_hidden", "last_cell")
"""Roles of what steps write; every other operand is read."""


@dataclass(frozen=True)
class Operand:
    """A value in a role: src, src1, weights, bias, scale, shift, mean, variance, condition, indices, dst.

    A depthwise post-op adds depthwise_weights and depthwise_bias; a recurrent layer has recurrence,
    peepholes, hidden, cell, and the results last_hidden and last_cell; attention has key, value and mask.
    """

    role: str
    value: int

    @property
    def is_result(self) -> bool:
        return self.role in RESULT_ROLES


@dataclass(frozen=True)
class Step:
    """One primitive.

    Attributes
    ----------
    implementation : name of the implementation that the plan is built on, '' if not asked yet or if
        nothing is left to run.
    scratchpad_offset, scratchpad_bytes : arena bytes lent to this step alone; -1 if not planned.
    refused : implementations that the library would run by itself and must not, wherever the program goes:
        they are known to be wrong for this step.
    prepared : what the library made for it ahead of time, such as a plan for a device that is not here; in a
        format of the library's own, for its runtime.
    library : that runs it, '' for the one whose region it is.
    """

    name: str
    attrs: Attributes
    operands: tuple[Operand, ...]
    post_ops: tuple[PostOp, ...] = ()
    implementation: str = ""
    scratchpad_offset: int = -1
    scratchpad_bytes: int = -1
    refused: tuple[str, ...] = ()
    prepared: bytes = b""
    library: str = ""

    @property
    def kind(self) -> str:
        return KIND_OF[type(self.attrs)]

    def operand(self, role: str) -> int:
        """Value id of the first operand in ``role``; KeyError if there is none."""
        for operand in self.operands:
            if operand.role == role:
                return operand.value
        raise KeyError(f"{self.name}: no operand in role {role!r}")

    @property
    def dst(self) -> int:
        return self.operand("dst")

    @property
    def results(self) -> tuple[int, ...]:
        """Ids of all values that the step writes, in the order of its operands; most steps have dst alone."""
        return tuple(operand.value for operand in self.operands if operand.is_result)

    @property
    def has_depthwise(self) -> bool:
        """True for a pointwise convolution with a depthwise one fused into it."""
        return any(isinstance(post_op, DepthwisePostOp) for post_op in self.post_ops)

    def reads(self) -> Iterator[int]:
        """Ids of the operands this step reads, those of post-ops included, with repetitions.

        What a sum adds is known to the program alone: see :meth:`Program.reads`.
        """
        for operand in self.operands:
            if not operand.is_result:
                yield operand.value
        for post_op in self.post_ops:
            if isinstance(post_op, BinaryPostOp):
                yield post_op.value


@dataclass(frozen=True)
class SymbolBinding:
    """The place where the runtime reads a symbol: axis ``axis`` of input ``input``.

    With ``input`` -1: number ``axis`` of those that a call hands over beside its tensors.
    """

    name: str
    input: int
    axis: int


@dataclass(frozen=True)
class Program:
    """A whole region.  ``arena_bytes`` is -1 while nothing is planned."""

    name: str
    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    symbols: tuple[SymbolBinding, ...] = field(default=())
    arena_bytes: int = -1

    def of_kind(self, kind: ValueKind) -> list[int]:
        """Ids of the values of one kind, by their index for inputs, outputs and constants.

        Views of inputs, outputs and constants are of kind ``local``.
        """
        ids = [i for i, value in enumerate(self.values) if value.kind == kind]
        return sorted(ids, key=lambda i: self.values[i].index)

    def reads(self, step: Step) -> list[int]:
        """All values that ``step`` reads, the one that a sum adds to its destination included."""
        values = list(step.reads())
        added = self.values[step.dst].alias_of
        if added >= 0 and any(isinstance(post_op, SumPostOp) for post_op in step.post_ops):
            values.append(added)
        return values

    def root(self, value: int) -> int:
        """Id of the value that owns the bytes of ``value``."""
        passed = []
        while self.values[value].alias_of >= 0:
            if value in self._roots:
                value = self._roots[value]
                break
            passed.append(value)
            value = self.values[value].alias_of
        self._roots.update(dict.fromkeys(passed, value))
        return value

    @cached_property
    def _roots(self) -> dict[int, int]:
        """Roots that were asked for; chains of aliases may be as long as the program."""
        return {}

    def with_value(self, value: int, **changes: object) -> Program:
        """A copy with some fields of one value changed."""
        values = list(self.values)
        values[value] = replace(values[value], **changes)  # type: ignore[arg-type]
        return replace(self, values=tuple(values))
