"""Layouts that cuDNN's engines are asked for.

Images are channels last, which tensor cores work on, filters and what is added to images as well; vectors for
channels are plain.  What is no image stands as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm_mxplan.core.element_types import stored_bytes
from tvm_mxplan.core.layout.layout import (
    channels_last,
    parse_layout,
    permute_layout,
    plain_layout,
    same_bytes,
)
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.program import program as ir

TYPES = ("float32", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32")
"""Types of integers that products and conversions have, and their zero points."""
PRODUCTS = (ir.Convolution, ir.Deconvolution)
NORMS = (ir.BatchNormalizationTraining, ir.BatchNormalizationBackward)
IMAGES = (*PRODUCTS, *NORMS, ir.ConvolutionBackwardWeights, ir.Pooling, ir.Quantization)
"""Kinds that are asked for channels last.  Conversions into integers are among them, since whether cuDNN
changes the layout of integers, which would move a quarter of the bytes, is not known."""
RULES = LayoutRules(
    forms=("last",), images=IMAGES, follows=(ir.Eltwise, ir.Binary, ir.Concat, ir.Slice, ir.Softmax)
)
_PLAIN = (ir.LayerNormalization, ir.Reduction)
"""Kinds that are asked for plain tensors."""
_MOST_AXES = 5
"""Of tensors that cuDNN's conversion of layouts moves in one call."""


def filters_layout(rank: int, grouped: bool, transposed: bool = False) -> str:
    """Of filters [G?, O, I, k...] of a convolution, or a transposed one.

    The channels of what windows read are innermost, those of what they give outermost, groups around them.
    """
    outer = (0,) if grouped else ()
    first, second, *window = range(len(outer), rank)
    if transposed:
        first, second = second, first
    order = (*outer, first, *window, second)
    return permute_layout(plain_layout(rank), [order.index(axis) for axis in range(rank)])


def operands(step: ir.Step) -> list[tuple[str, int]]:
    """Roles and values in the order of uids: operands, then those of post-ops."""
    found = [(one.role, one.value) for one in step.operands]
    return found + [("src1", one.value) for one in step.post_ops if isinstance(one, ir.BinaryPostOp)]


def is_filters(step: ir.Step, role: str) -> bool:
    """Whether an operand is a convolution's filters: what it reads, or their gradient."""
    return role == ("dst" if isinstance(step.attrs, ir.ConvolutionBackwardWeights) else "weights")


def why_not(program: ir.Program, step: ir.Step) -> str:
    """Returns the reason why a step's operands cannot be in the layouts they have, '' if they can."""
    for role, number in operands(step):
        value = program.values[number]
        rank = len(value.shape)
        if parse_layout(value.layout).blocks:
            return f"{role} in blocks: cuDNN is asked for channels last alone"
        if isinstance(step.attrs, IMAGES):
            expected, wording = channels_last(rank), "channels last alone"
            if is_filters(step, role):
                transposed = isinstance(step.attrs, ir.Deconvolution)
                expected = filters_layout(rank, step.attrs.groups > 1, transposed)  # type: ignore[union-attr]
        elif isinstance(step.attrs, _PLAIN):
            expected, wording = plain_layout(rank), "plain ones alone"
        else:
            continue
        if not same_bytes(value.layout, expected, value.shape):
            return f"{role} in {value.layout}: cuDNN is asked for {wording}"
    return ""


def forms(program: ir.Program, step: ir.Step) -> list[ir.Program]:
    """The step alone in the layouts that cuDNN is asked for it in, the best guess first.

    Images are channels last, also those of elementwise steps that read numbers for each channel: there alone
    are engines for them.  All else stands as it is.
    """
    if isinstance(step.attrs, IMAGES):
        return [_alone(program, step, True)]
    shapes = {program.values[number].shape for _, number in operands(step)}
    elementwise = isinstance(step.attrs, ir.Eltwise | ir.Binary)
    image = {len(shape) for shape in shapes} in ({3}, {4}, {5})
    both = elementwise and image and len(shapes) > 1
    return [_alone(program, step, last) for last in ((True, False) if both else (False,))]


def _alone(program: ir.Program, step: ir.Step, last: bool) -> ir.Program:
    values = list(program.values)
    for role, number in operands(step):
        value = values[number]
        if last and not is_filters(step, role) and len(value.shape) > 2:
            values[number] = ir.Value(
                value.name, value.shape, value.dtype, value.kind, channels_last(len(value.shape)), value.index
            )
    return ir.Program(program.name, tuple(values), (step,))


def conversion_calls(shape: Sequence[int], src: Sequence[int], dst: Sequence[int]) -> int:
    """Calls of cuDNN's conversion that move a tensor from strides ``src`` to strides ``dst``.

    Axes that stand one behind the other in both are one axis; each call has the longest ones, as many as it
    takes (``runtime/cudnn/function_stages.cc``).
    """
    merged: list[int] = []
    before: tuple[int, int] | None = None
    for axis in sorted(range(len(shape)), key=lambda at: -dst[at]):
        if shape[axis] == 1:
            continue
        inner = src[axis] * shape[axis], dst[axis] * shape[axis]
        if before == inner:
            merged[-1] *= shape[axis]
        else:
            merged.append(shape[axis])
        before = src[axis], dst[axis]
    return math.prod(sorted(merged)[: max(0, len(merged) - _MOST_AXES)])


def nbytes(value: ir.Value) -> int:
    """Bytes of a value, -1 of a type that cuDNN is not given."""
    if value.dtype not in (*TYPES, *INTEGERS):
        return -1
    return stored_bytes(value.shape, value.layout, value.dtype)
