"""Judging one step: what it wrote against its reference, its tails and its alignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tvm_mxplan.core.element_types import item_bytes, numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

from .estimate import Array, Estimate, as_stored, unit_roundoff
from .physical import CheckedTensor, read
from .references import evaluate
from .result import Finding, Kind

ALIGNMENT = 64


@dataclass(frozen=True)
class Verdict:
    """Findings of one step; ``worst`` is its largest error as a share of what is allowed."""

    findings: tuple[Finding, ...]
    worst: float
    finite: bool


def judge(
    program: ir.Program,
    step: ir.Step,
    reads: Mapping[int, CheckedTensor],
    results: Mapping[int, CheckedTensor],
    prior: Array | None,
) -> Verdict:
    """Compare what ``step`` wrote with what its program asks for.

    Parameters
    ----------
    reads : what the step read, before it ran, by value.
    results : what it wrote, by value.
    prior : what ``dst`` held before, where a sum adds to it.
    """
    findings = [
        Finding("tail", program.values[value].name, tensor.dirty)
        for value, tensor in [*reads.items(), *results.items()]
        if tensor.dirty
    ]
    findings += [
        Finding("alignment", program.values[value].name, address=tensor.address)
        for value, tensor in [*reads.items(), *results.items()]
        if tensor.address % _alignment(program, value)
    ]
    worst, wrong = 0.0, []
    for value, estimate in reference(program, step, reads, prior).items():
        finding, share = differ(program.values[value].name, results[value].logical, estimate)
        worst = max(worst, share)
        wrong += [finding] if finding else []
    finite = all(bool(np.isfinite(tensor.logical).all()) for tensor in results.values())
    return Verdict((*wrong, *findings), worst, finite)


def reference(
    program: ir.Program, step: ir.Step, reads: Mapping[int, CheckedTensor], prior: Array | None
) -> dict[int, Estimate]:
    """Computes the expected results of the step for what it read, by the value that it writes."""
    operands: dict[str, list[Array]] = {}
    for operand in step.operands:
        if not operand.is_result:
            operands.setdefault(operand.role, []).append(reads[operand.value].logical)
    post_operands = [
        reads[post_op.value].logical
        if isinstance(post_op, ir.BinaryPostOp)
        else prior
        if isinstance(post_op, ir.SumPostOp)
        else None
        for post_op in step.post_ops
    ]
    dst = program.values[step.dst]
    shape, dtype = static_shape(dst.shape), numpy_type(dst.dtype)
    estimates = evaluate(step, shape, operands, post_operands, dtype)
    return {operand.value: estimates[operand.role] for operand in step.operands if operand.is_result}


def prior_of(program: ir.Program, step: ir.Step, reads: Mapping[int, CheckedTensor]) -> Array | None:
    """Returns the addend of a sum: the bytes under ``dst``, seen as ``dst`` sees them; None without one."""
    if not any(isinstance(post_op, ir.SumPostOp) for post_op in step.post_ops):
        return None
    value = program.values[step.dst]
    begin = int(value.alias_offset)  # type: ignore[arg-type]
    return read(reads[value.alias_of].raw[begin:], value).logical


def differ(name: str, actual: Array, estimate: Estimate) -> tuple[Finding | None, float]:
    """The worst element outside of its error, if any, and the largest share of its error that one takes.

    A reference that is no number says nothing, nor does one that nothing bounds; an infinite one must be met.
    """
    with np.errstate(all="ignore"):
        rounded = as_stored(estimate.value, actual.dtype).astype(np.float64)
        stored = np.abs(rounded - estimate.value)  # what the best result would be off by
        if np.any(estimate.error):
            stored = np.maximum(stored, unit_roundoff(actual.dtype) * np.abs(estimate.value))
        allowed = estimate.error + stored
        got = actual.astype(np.float64)
        gap = np.abs(got - estimate.value)
        share = np.where(gap == 0, 0.0, gap / allowed)
    share[np.isnan(share)] = np.inf
    unbounded = np.isposinf(estimate.error) & np.isfinite(estimate.value)
    share[(got == rounded) | np.isnan(estimate.value) | unbounded] = 0.0
    if not share.size:
        return None, 0.0
    wrong = share > 1
    at = np.unravel_index(int(share.argmax()), share.shape)
    worst = float(share[at])
    if not wrong.any():
        return None, worst
    kind: Kind = "values" if np.isfinite(got[at]) else "not finite"
    where = tuple(int(i) for i in at)
    error = np.broadcast_to(allowed, share.shape)[at]
    numbers = (float(got[at]), float(estimate.value[at]), float(error))
    return Finding(kind, name, int(wrong.sum()), share.size, where, *numbers), worst


def _alignment(program: ir.Program, value: int) -> int:
    """Bytes to a multiple of which a value must stand: 64 for what the plan places, else its elements'."""
    what = program.values[value]
    if what.kind == "local" and what.alias_of < 0:
        return ALIGNMENT
    return item_bytes(what.dtype)
