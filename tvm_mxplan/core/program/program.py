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
- An input or output with a ``state`` is what outlives a call (an input), or what changes it by the end of
  the call, number by number (an output): all values of one state agree in shape, type and layout, whatever
  layout that is, and one output at most changes it.
- ``offset`` is a byte offset into the arena, or -1 where the runtime has to plan (symbolic shapes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from ..policies import CONVOLUTION_ALGORITHMS
from .attributes import (
    KIND_OF,
    LRN,
    STEP_KINDS,
    Attributes,
    BatchNormalization,
    BatchNormalizationBackward,
    BatchNormalizationTraining,
    Binary,
    Convolution,
    ConvolutionBackwardWeights,
    Deconvolution,
    DynamicQuantization,
    Eltwise,
    FewBitsProduct,
    GroupedProduct,
    InnerProduct,
    LayerNormalization,
    LayerNormalizationBackward,
    MatMul,
    Pooling,
    PoolingBackward,
    PReLU,
    Quantization,
    Reduction,
    RmsNormalization,
    Softmax,
)
from .dims import Dim, Shape
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
from .kinds.sequences import (
    ATTENTION_CAUSAL,
    RECURRENT_CELLS,
    RECURRENT_DIRECTIONS,
    Attention,
    AttentionCausal,
    Recurrent,
    RecurrentBackward,
    RecurrentCell,
    RecurrentDirection,
    RecurrentTraining,
    Rotary,
)
from .post_ops import BinaryPostOp, DepthwisePostOp, EltwisePostOp, PostOp, SumPostOp
from .roles import RESULT_ROLES, SCALE_ROLES

__all__ = [
    "ATTENTION_CAUSAL",
    "CONVOLUTION_ALGORITHMS",
    "KIND_OF",
    "LRN",
    "PRODUCTS",
    "RECURRENT_CELLS",
    "RECURRENT_DIRECTIONS",
    "RESULT_ROLES",
    "SCALE_ROLES",
    "STEP_KINDS",
    "VALUE_KINDS",
    "VERSION",
    "Attention",
    "AttentionCausal",
    "Attributes",
    "BatchNormalization",
    "BatchNormalizationBackward",
    "BatchNormalizationTraining",
    "Binary",
    "BinaryPostOp",
    "Cast",
    "Compare",
    "Concat",
    "Convolution",
    "ConvolutionBackwardWeights",
    "CumulativeSum",
    "Deconvolution",
    "DepthwisePostOp",
    "DynamicQuantization",
    "Eltwise",
    "EltwisePostOp",
    "ExtremeIndex",
    "FewBitsProduct",
    "Gather",
    "GatherElements",
    "GatherNd",
    "GatherPlaces",
    "GridSample",
    "GroupedProduct",
    "InnerProduct",
    "LayerNormalization",
    "LayerNormalizationBackward",
    "MatMul",
    "Operand",
    "PReLU",
    "Pad",
    "Pooling",
    "PoolingBackward",
    "PostOp",
    "Program",
    "Put",
    "Quantization",
    "Ranking",
    "Recurrent",
    "RecurrentBackward",
    "RecurrentCell",
    "RecurrentDirection",
    "RecurrentTraining",
    "Reduction",
    "Reorder",
    "Resampling",
    "Resize",
    "RmsNormalization",
    "Rotary",
    "Scatter",
    "ScatterElements",
    "Select",
    "Shuffle",
    "Slice",
    "Softmax",
    "SqueezeExcite",
    "Step",
    "StridedSlice",
    "SumPostOp",
    "SymbolBinding",
    "Value",
    "ValueKind",
]

VERSION = 7

ValueKind = Literal["input", "output", "constant", "local"]
VALUE_KINDS: tuple[ValueKind, ...] = ("input", "output", "constant", "local")


@dataclass(frozen=True)
class Value:
    """One tensor of a region.

    Attributes
    ----------
    index : number among the region's inputs, outputs or constants; -1 for locals.
    layout : physical layout tag (see the module's rules).
    state : number of the state in this region that the value reads or changes, or -1.
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
    state: int = -1

    def inside(self, **changes: object) -> Value:
        """The value as a local: of no number among inputs, outputs or constants, and of no state."""
        return replace(self, kind="local", index=-1, state=-1, **changes)  # type: ignore[arg-type]


PRODUCTS = (Convolution, Deconvolution, MatMul, InnerProduct)
"""Attributes of steps that multiply by weights; integers multiply in these alone."""


@dataclass(frozen=True)
class Operand:
    """A value in a role: src, src1, weights, bias, scale, shift, mean, variance, condition, indices, dst.

    Integers add those of ``SCALE_ROLES``.  A depthwise post-op adds depthwise_weights and depthwise_bias; a
    recurrent layer has recurrence, peepholes, hidden, cell, and the results last_hidden and last_cell;
    attention has key, value, mask, past_key, past_value, filled, and the results joined_key, joined_value; a
    dynamic quantization the results made_scale and made_zero_point; a ranking the result order; steps
    backward read a gradient beside what went forward.
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
    def is_quantized(self) -> bool:
        """True for a product of integers."""
        return any(operand.role == "weights_scale" for operand in self.operands)

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

    def states(self) -> list[int]:
        """Ids of the inputs and outputs that read or change state."""
        return [i for i, value in enumerate(self.values) if value.state >= 0]

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
