"""Computes a case's expected result: opcheck's references, without an error where our numbers leave none.

Sums of our numbers are exact, so a step that adds and multiplies has one right answer, bit for bit, and keeps
it through post-ops that round nothing.  From the first step or post-op that rounds on, opcheck's bound holds.

Results that are dear to work out are worked out in part: the first and the last image, and of the channels
the first, the last, those around multiples of 16, and some at random.  All of every such image's pixels are
compared, borders included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.estimate import Array, Estimate
from tvm_mxplan.opcheck.references import POST_OPS, quantized, results_of, short_roles
from tvm_mxplan.opcheck.references.choice import cast_to
from tvm_mxplan.opcheck.references.operands import Operands

from .steps.functions import EXACT_ELTWISE
from .steps.subject import Subject

MOST_WORK = 12_000_000
"""Multiplications of a reference."""
_EXACT_BINARIES = ("add", "sub", "mul", "div", "min", "max")
_FEWEST = 12  # channels
_WINDOWED = (ir.Convolution, ir.Deconvolution)


@dataclass(frozen=True)
class Part:
    """The images and channels of the result that are worked out; None for all."""

    images: Array | None = None
    channels: Array | None = None
    axis: int = 1  # of channels

    def of(self, array: Array) -> Array:
        """The part of an array shaped as the result, or one that broadcasts to it."""
        if self.images is not None and array.shape[0] > 1:
            array = array[self.images]
        if self.channels is not None and array.shape[self.axis] > 1:
            array = array.take(self.channels, self.axis)
        return array


def choose_part(subject: Subject, random: np.random.Generator) -> Part:
    """As much of the result as may be worked out."""
    if subject.channels < 0 or subject.work <= MOST_WORK:
        return Part(axis=max(subject.channels, 0))
    share = MOST_WORK / subject.work
    images = None
    windowed = isinstance(subject.attrs, _WINDOWED)
    if windowed and subject.dst[0] > 2:
        images = np.array([0, subject.dst[0] - 1])
        share *= subject.dst[0] / 2
    count, groups = subject.dst[subject.channels], getattr(subject.attrs, "groups", 1)
    if share >= 1:
        return Part(images, None, subject.channels)
    if groups > 1:  # whole groups
        wanted = np.unique([0, groups - 1, *random.integers(0, groups, max(1, int(share * groups)))])
        channels = (wanted[:, None] * (count // groups) + np.arange(count // groups)).ravel()
    else:
        edges = [at for at in (0, 1, 15, 16, 17, 31, 32, 63, 64, count - 2, count - 1) if 0 <= at < count]
        more = random.integers(0, count, max(_FEWEST, int(share * count)))
        channels = np.unique([*edges, *more])[: max(_FEWEST, int(share * count)) + len(edges)]
    return Part(images, channels, subject.channels)


def expected(
    subject: Subject,
    post_ops: Sequence[ir.PostOp],
    operands: Mapping[str, Sequence[Array]],
    post_operands: Sequence[Array | None],
    part: Part,
) -> dict[str, Estimate]:
    """The results by role, of dst the part, in float64.

    Parameters
    ----------
    post_operands : for each post-op, what a binary reads, or what the result's bytes held for a sum.
    """
    step = ir.Step("step", subject.attrs, ())
    doubles = {role: [array.astype(np.float64) for array in arrays] for role, arrays in operands.items()}
    attrs, given, shape = _cut(subject, quantized.real(step, doubles), part)
    known = Operands(given, shape, numpy_type(subject.written), short_roles(operands))
    with np.errstate(all="ignore"):
        others = results_of(attrs, known)
        estimate = others.pop("dst")
        if isinstance(attrs, ir.Cast):
            estimate = cast_to(numpy_type(subject.written), estimate)
        if subject.exact:
            estimate = _without_error(estimate)
        lost = np.isnan(estimate.value)
        for post_op, operand in zip(post_ops, post_operands, strict=True):
            other = None if operand is None else part.of(operand).astype(np.float64)
            was_exact = not np.any(estimate.error)
            estimate = POST_OPS[type(post_op)](post_op, estimate, other, known)
            if was_exact and _rounds_nothing(post_op):
                estimate = _without_error(estimate)
            lost = lost | np.isnan(estimate.value)
        # A bound that leaves a function's domain says nothing, nor does what comes of no number: the larger
        # of NaN and 1 is either.
        error = np.where(np.isnan(estimate.error) | lost, np.inf, estimate.error)
        estimate = Estimate(estimate.value, error if np.any(error) else 0.0)
        estimate = quantized.stored(step, doubles, estimate, numpy_type(subject.written))
    return {"dst": estimate, **others}


def _rounds_nothing(post_op: ir.PostOp) -> bool:
    if isinstance(post_op, ir.EltwisePostOp):
        return post_op.algorithm in EXACT_ELTWISE
    return isinstance(post_op, ir.SumPostOp) or (
        isinstance(post_op, ir.BinaryPostOp) and post_op.algorithm in _EXACT_BINARIES
    )


def _without_error(estimate: Estimate) -> Estimate:
    """The same, taken to be exact where every value has a place in float32."""
    if np.array_equal(estimate.value, estimate.value.astype(np.float32), equal_nan=True):
        return Estimate(estimate.value)
    return estimate


def _cut(
    subject: Subject, operands: Mapping[str, Sequence[Array]], part: Part
) -> tuple[ir.Attributes, dict[str, list[Array]], tuple[int, ...]]:
    """Attributes, operands and the result's shape of a part alone."""
    given = {role: list(arrays) for role, arrays in operands.items()}
    shape = list(subject.dst)
    attrs = subject.attrs
    if part.images is not None:
        given["src"] = [given["src"][0][part.images]]
        shape[0] = len(part.images)
    if part.channels is None:
        return attrs, given, tuple(shape)
    shape[part.axis] = len(part.channels)
    if "bias" in given:
        bias = given["bias"][0]
        given["bias"] = [bias.take(part.channels, bias.ndim - 1 if isinstance(attrs, ir.MatMul) else 0)]
    weights = given["weights"][0]
    groups = getattr(attrs, "groups", 1)
    if isinstance(attrs, ir.MatMul):
        given["weights"] = [weights.take(part.channels, weights.ndim - 1)]
    elif groups == 1:
        given["weights"] = [weights[part.channels]]
    else:
        each = subject.dst[1] // groups
        kept = np.unique(part.channels // each)
        src = given["src"][0]
        inputs = src.shape[1] // groups
        given["weights"] = [weights[kept]]
        given["src"] = [src[:, (kept[:, None] * inputs + np.arange(inputs)).ravel()]]
        assert isinstance(attrs, _WINDOWED)
        attrs = replace(attrs, groups=len(kept))
        if len(kept) == 1:
            given["weights"] = [given["weights"][0][0]]
    return attrs, given, tuple(shape)
