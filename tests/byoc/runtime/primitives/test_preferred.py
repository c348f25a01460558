"""A convolution by an implementation that is not the library's first choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from program_builder import Builder, call, check, convolution, grouped, output_shape, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir

RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
ONES = (1, 1)
CASES = {
    "depthwise": ((2, 35, 19, 20), (35, 1, 3, 3), ir.Convolution(ONES, (1, 1, 1, 1), ONES, 35)),
    "pointwise": ((1, 48, 14, 15), (24, 48, 1, 1), ir.Convolution(ONES, (0, 0, 0, 0), ONES, 1)),
    "pointwise in groups": ((2, 68, 9, 10), (68, 17, 1, 1), ir.Convolution(ONES, (0, 0, 0, 0), ONES, 4)),
    "three channels": ((2, 3, 17, 16), (32, 3, 3, 3), ir.Convolution((2, 2), (1, 1, 1, 1), ONES, 1)),
}


class Case:
    """input -> reorder to channels last -> convolution with bias and relu -> reorder -> output."""

    def __init__(self, name: str, preferred: str = "") -> None:
        shape, weights, attrs = CASES[name]
        self.attrs = replace(attrs, preferred=preferred)
        self.x, self.w, self.bias = random(*shape), random(*weights), random(weights[0])
        self.builder = b = Builder()
        src = b.reorder(b.input(shape), "acdb")
        dst = b.local(output_shape(shape, weights, attrs), "acdb")
        w, bias = b.constant(grouped(self.w, attrs.groups)), b.constant(self.bias)
        b.step(self.attrs, [RELU], src=src, weights=w, bias=bias, dst=dst)
        b.finish(dst)

    def info(self) -> StepInfo:
        return library.describe(self.builder.build()).steps[1]

    def runs(self) -> dict[str, str]:
        """The kernels that the loaded module runs, after it has been held against numpy."""
        expected = np.maximum(convolution(self.x, self.w, self.attrs, self.bias), 0)
        check(self.builder.run(self.x), expected, self.w[0].size)
        module = self.builder.module()
        call(module, self.builder.name, self.x, np.empty(expected.shape, "float32"))
        (specialization,) = library.stats(module)["specializations"]
        step = specialization["steps"][1]
        return {"implementation": step["implementation"], "missing": step["missing"]}


@pytest.mark.parametrize("name", CASES)
def test_every_alternative_computes_the_same(name: str) -> None:
    first = Case(name).info()
    assert first.alternatives and first.implementation not in first.alternatives
    assert not any(alternative.startswith("ref") for alternative in first.alternatives)
    for alternative in first.alternatives:
        case = Case(name, alternative)
        info = case.info()
        assert (info.implementation, info.error) == (alternative, "")
        assert case.runs() == {"implementation": alternative, "missing": ""}


def test_what_is_not_there_is_said_and_the_first_choice_runs() -> None:
    """A library that was compiled elsewhere runs all the same."""
    case, first = Case("depthwise", "jit_dw:other"), Case("depthwise").info()
    assert "no jit_dw:other for it here" in case.info().error
    assert case.runs() == {"implementation": first.implementation, "missing": "jit_dw:other"}


def test_winograd_has_no_other_implementation() -> None:
    case = Case("pointwise", "jit_1x1:avx2")
    (convolved,) = (step for step in case.builder.steps if step.kind == "convolution")
    at = case.builder.steps.index(convolved)
    attrs = replace(case.attrs, algorithm="winograd_f4")
    case.builder.steps[at] = replace(convolved, attrs=attrs)
    assert "jit_1x1:avx2 is none of algorithm winograd_f4" in case.info().error
