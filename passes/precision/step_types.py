"""Element types that a step could read and write: proposals, and the step alone in one of them.

    products            all float32; short operands, and a result in either type: sums are float32
    recurrent layers    short inputs and weights; states, which go from step to step, and results in float32
    norms, conversions  each of both types, since they convert on the way
    steps of training   float32, as orders and their places, sums along axes, and products of groups
    softmax             float32: a rounding of what it reads is one of its results' logarithms
    attention           one type throughout, its mask and what is inside of its softmax in float32; on caches
                        float32, for these come and go so, and would be converted as a whole
    steps of integers   what they read and write of real numbers, each in both types
    all others          one type throughout

Biases, statistics, scales and shifts stay in float32, and so do constants that are added or multiplied.
Whether a library takes a proposal is its own answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of

FLOAT = "float32"
_IN_TRAINING = (
    ir.ConvolutionBackwardWeights,
    ir.PoolingBackward,
    ir.BatchNormalizationTraining,
    ir.BatchNormalizationBackward,
    ir.LayerNormalizationBackward,
    ir.RecurrentTraining,
    ir.RecurrentBackward,
)
_IN_FLOAT = (
    ir.CumulativeSum,
    ir.ExtremeIndex,
    ir.Ranking,
    ir.GridSample,
    ir.GroupedProduct,
    ir.Scatter,
    ir.ScatterElements,
)
_CONVERTING = (ir.LayerNormalization, ir.RmsNormalization, ir.Reorder)
_MOVING = (
    ir.Concat,
    ir.Shuffle,
    ir.Pad,
    ir.Slice,
    ir.StridedSlice,
    ir.Gather,
    ir.GatherElements,
    ir.GatherNd,
    ir.GatherPlaces,
    ir.Put,
    ir.Select,
    ir.Reorder,
)
_FILTERS = ("weights", "depthwise_weights", "gate_weights", "recurrence")
_DATA = ("src", "src1", "part", "key", "value", "past_key", "past_value")


@dataclass(frozen=True)
class StepTypes:
    """The element types of what a step reads as its data, and of what it writes."""

    read: str = FLOAT
    written: str = FLOAT

    @property
    def is_float(self) -> bool:
        return self.read == self.written == FLOAT


def proposals_in(program: ir.Program, step: ir.Step, short: str) -> list[StepTypes]:
    """The same as ``proposals`` for a step of a program, which may read or write integers."""
    if computes_in_float(program, step):
        return proposals(step, short)
    return _beside_integers(program, step, short)


def proposals(step: ir.Step, short: str) -> list[StepTypes]:
    """Types for a step of real numbers where ``short`` is wanted; float32 throughout comes first."""
    both = [StepTypes(), StepTypes(short, short)]
    if step.has_depthwise or any(isinstance(post_op, ir.SumPostOp) for post_op in step.post_ops):
        return both[:1]
    if isinstance(step.attrs, (*_IN_TRAINING, *_IN_FLOAT)):
        return both[:1]
    if isinstance(step.attrs, ir.PRODUCTS):
        return [*both, StepTypes(short, FLOAT)]
    if isinstance(step.attrs, ir.Recurrent):
        return [StepTypes(), StepTypes(short, FLOAT)]
    if isinstance(step.attrs, _CONVERTING):
        return [*both, StepTypes(short, FLOAT), StepTypes(FLOAT, short)]
    if isinstance(step.attrs, ir.Softmax) or any(one.role == "past_key" for one in step.operands):
        return both[:1]
    return both


def _beside_integers(program: ir.Program, step: ir.Step, short: str) -> list[StepTypes]:
    """Types of what is real on either side of a step of integers."""
    reads = written = FLOAT
    for role, number in operands_of(step):
        value = program.values[number]
        if value.dtype != FLOAT or program.values[program.root(number)].kind == "constant":
            continue
        if role == "src" and isinstance(step.attrs, ir.Quantization):
            reads = short
        elif role in ("dst", "post_op") and (step.is_quantized or isinstance(step.attrs, ir.Quantization)):
            written = short
    found = StepTypes(reads, written)
    return [StepTypes()] if found.is_float else [StepTypes(), found]


def operand_type(role: str, constant: bool, types: StepTypes) -> str:
    """The type of an operand in a role; ``post_op`` for what binary post-ops read."""
    if role in ir.RESULT_ROLES:
        return types.written
    if role in _FILTERS:
        return types.read
    if constant:
        return FLOAT
    if role == "post_op":
        return types.written
    return types.read if role in _DATA else FLOAT


def in_types(alone: ir.Program, types: StepTypes) -> ir.Program | None:
    """A program of one step with its operands in ``types``; None where it reads a value in two of them."""
    values = list(alone.values)
    chosen: dict[int, str] = {}
    for role, number in operands_of(alone.steps[0]):
        if alone.values[number].dtype != FLOAT:
            continue
        dtype = operand_type(role, values[number].kind == "constant", types)
        if chosen.setdefault(number, dtype) != dtype:
            return None
        values[number] = replace(values[number], dtype=dtype)
    return replace(alone, values=tuple(values))


def computes(step: ir.Step) -> bool:
    """Whether ``step`` does more than to move elements."""
    return bool(step.post_ops) or not moves(step)


def moves(step: ir.Step) -> bool:
    """Whether ``step``, its post-ops left out, gives back elements that it reads."""
    return isinstance(step.attrs, _MOVING)


def is_open(program: ir.Program, step: ir.Step) -> bool:
    """Whether there is something to decide: ``step`` is real, or stands between integers and real numbers."""
    integers = step.is_quantized or isinstance(step.attrs, ir.Quantization)
    return integers or computes_in_float(program, step)


def computes_in_float(program: ir.Program, step: ir.Step) -> bool:
    """Whether all that ``step`` touches is float32."""
    return all(program.values[number].dtype == FLOAT for _, number in operands_of(step))
