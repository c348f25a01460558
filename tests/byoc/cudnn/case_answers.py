"""A step of ``scripts/_cudnn/cases.py`` as a region of its own: operands, and what right answers are."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tvm_mxplan.byoc.cudnn.layout_rules import operands
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.estimate import Estimate, unit_roundoff
from tvm_mxplan.opcheck.references import evaluate

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

from _cudnn.cases import CASES, AnyCase

Array = np.ndarray[Any, Any]
__all__ = ["CASES", "AnyCase", "Question", "logical", "misses", "question_of", "stored"]
_MARGIN = 4.0
"""Of the bounds of errors: engines may round what they read, and what stands between two nodes, once more."""


@dataclass(frozen=True)
class Question:
    """A program of one step, the numbers that it reads, and its results with their errors, by value."""

    program: ir.Program
    given: Mapping[int, Array]
    right: Mapping[int, Estimate]

    @property
    def step(self) -> ir.Step:
        return self.program.steps[0]


def question_of(case: AnyCase, dtype: str) -> Question:
    """The step with inputs in the place of constants, random numbers for them, and float64's answers."""
    program = _as_region(case.program(dtype))
    (step,) = program.steps
    random = np.random.default_rng(len(case.name))
    roles = {number: role for role, number in operands(step)}
    given = {
        number: _drawn(random, roles[number], program.values[number])
        for number in roles
        if number not in step.results
    }
    by_role: dict[str, list[Array]] = {}
    for one in step.operands:
        if not one.is_result:
            by_role.setdefault(one.role, []).append(given[one.value])
    behind = [given[one.value] if isinstance(one, ir.BinaryPostOp) else None for one in step.post_ops]
    result = program.values[step.dst]
    found = evaluate(step, result.shape, by_role, behind, numpy_type(result.dtype))  # type: ignore[arg-type]
    right = {one.value: found[one.role] for one in step.operands if one.is_result}
    return Question(program, given, right)


def misses(question: Question, found: Mapping[int, Array]) -> float:
    """The largest distance from float64's answers, in what is allowed for it; right ones stay below 1."""
    worst = 0.0
    for number, estimate in question.right.items():
        dtype = numpy_type(question.program.values[number].dtype)
        rounding = unit_roundoff(dtype) * np.abs(estimate.value) + _smallest_rounding(dtype)
        allowed = _MARGIN * (np.asarray(estimate.error) + rounding)
        if dtype.kind in "iu":
            allowed = 0.5 + _MARGIN * np.asarray(estimate.error)
        gap = np.abs(np.asarray(found[number], np.float64) - estimate.value)
        if not np.isfinite(gap).all():
            return math.inf
        worst = max(worst, float((gap / (allowed + 1e-30)).max()))
    return worst


def _smallest_rounding(dtype: np.dtype[Any]) -> float:
    """The absolute error of rounding numbers that are too small for a type's relative one."""
    return 0.0 if dtype.kind in "iu" else float(ml_dtypes.finfo(dtype).smallest_subnormal) / 2


def stored(array: Array, layout: str) -> Array:
    """An array as its layout stores it, outermost axis first."""
    return np.ascontiguousarray(array.transpose(parse_layout(layout).order))


def logical(array: Array, layout: str) -> Array:
    """Inverse of ``stored``."""
    return array.transpose(np.argsort(parse_layout(layout).order))


def _as_region(program: ir.Program) -> ir.Program:
    """The program whose step reads inputs and writes outputs; constants are inputs, and views values."""
    (step,) = program.steps
    numbers = list(dict.fromkeys(value for _, value in operands(step)))
    place = {number: at for at, number in enumerate(numbers)}
    values, counts = [], {"input": 0, "output": 0}
    for number in numbers:
        kind: Any = "output" if number in step.results else "input"
        value = replace(program.values[number], kind=kind, index=counts[kind], alias_of=-1)
        counts[kind] += 1
        values.append(value)
    moved = tuple(replace(one, value=place[one.value]) for one in step.operands)
    behind = tuple(
        replace(one, value=place[one.value]) if isinstance(one, ir.BinaryPostOp) else one
        for one in step.post_ops
    )
    return ir.Program("case", tuple(values), (replace(step, operands=moved, post_ops=behind),))


def _drawn(random: np.random.Generator, role: str, value: ir.Value) -> Array:
    shape: Sequence[int] = value.shape  # type: ignore[assignment]
    if value.dtype in ("int8", "uint8"):
        limits = np.iinfo(value.dtype)
        return random.integers(limits.min, limits.max, shape, endpoint=True).astype(value.dtype)
    if value.dtype == "int32":
        return random.integers(-5, 6, shape).astype("int32")
    if role in ("src_scale", "weights_scale", "dst_scale", "variance"):
        return random.uniform(0.01, 0.05, shape).astype("float32")
    if math.prod(shape) == 1 and role == "src1":
        return random.uniform(0.5, 2.0, shape).astype(numpy_type(value.dtype))
    deep = math.prod(shape[1:]) if role in ("weights", "key") and len(shape) > 1 else 1
    return (random.standard_normal(shape) / math.sqrt(deep)).astype(numpy_type(value.dtype))
