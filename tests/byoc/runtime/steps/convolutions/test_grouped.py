"""Convolutions in narrow groups by the runtime's own kernels, held against numpy and against the library."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import Builder, call, check, convolution, grouped, output_shape, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

ONES = (1, 1)
PADDED = (1, 1, 1, 1)
CASES = {
    # source, weights, strides, padding, dilation, groups
    "four in a group": ((2, 64, 19, 17), (64, 4, 3, 3), ONES, PADDED, ONES, 16),
    "eight in a group": ((1, 48, 9, 33), (48, 8, 3, 3), ONES, PADDED, ONES, 6),
    "sixteen, every second pixel": ((2, 96, 15, 14), (96, 16, 3, 3), (2, 2), PADDED, ONES, 6),
    "twenty-four": ((1, 72, 7, 7), (72, 24, 3, 3), ONES, PADDED, ONES, 3),
    "twenty-one to nineteen": ((1, 63, 10, 11), (57, 21, 3, 3), ONES, PADDED, ONES, 3),
    "forty, more than four vectors": ((1, 80, 6, 13), (80, 40, 3, 3), ONES, PADDED, ONES, 2),
    "far apart": ((1, 32, 20, 18), (32, 16, 3, 3), ONES, (3, 2, 3, 2), (3, 2), 2),
    "uneven": ((1, 32, 12, 30), (32, 8, 5, 2), (3, 2), (0, 1, 2, 0), (1, 3), 4),
    "pointwise": ((2, 48, 9, 10), (96, 12, 1, 1), ONES, (0, 0, 0, 0), ONES, 4),
    "every second point": ((1, 64, 9, 9), (64, 16, 1, 1), (2, 2), (0, 0, 0, 0), ONES, 4),
    "one to two": ((2, 32, 17, 15), (64, 1, 7, 7), (2, 2), (3, 3, 3, 3), ONES, 32),
    "one to two points": ((1, 48, 8, 9), (96, 1, 1, 1), ONES, (0, 0, 0, 0), ONES, 48),
    "one to four": ((1, 16, 9, 10), (64, 1, 3, 3), ONES, PADDED, ONES, 16),
    "one to sixteen": ((2, 5, 7, 9), (80, 1, 3, 3), ONES, PADDED, ONES, 5),
    "one to forty": ((1, 2, 6, 7), (80, 1, 5, 5), ONES, (2, 2, 2, 2), ONES, 2),
    "wide rows": ((1, 32, 5, 150), (32, 4, 3, 3), ONES, PADDED, ONES, 8),
}
POST_OPS = {
    "nothing": [],
    "relu": [ir.EltwisePostOp("relu", 0.0, 0.0)],
    "swish": [ir.EltwisePostOp("swish", 1.0, 0.0)],
}


class Case:
    """input -> reorder to channels last -> convolution with bias -> reorder -> output."""

    def __init__(self, name: str, preferred: str = "", post_ops: str = "relu", added: bool = False) -> None:
        shape, weights, *geometry = CASES[name]
        self.attrs = ir.Convolution(*geometry, preferred=preferred)
        self.x, self.w, self.bias = random(*shape), random(*weights), random(weights[0])
        self.shape = output_shape(shape, weights, self.attrs)
        self.added = random(*self.shape) if added else None
        self.builder = b = Builder()
        src = b.reorder(b.input(shape), "acdb")
        dst = b.local(self.shape, "acdb")
        w, bias = b.constant(grouped(self.w, self.attrs.groups)), b.constant(self.bias)
        ops = list(POST_OPS[post_ops])
        if added:
            ops.append(ir.BinaryPostOp("add", b.reorder(b.input(self.shape), "acdb")))
        b.step(self.attrs, ops, src=src, weights=w, bias=bias, dst=dst)
        b.finish(dst)

    def info(self) -> StepInfo:
        steps = library.describe(self.builder.build()).steps
        return next(
            s for s, step in zip(steps, self.builder.steps, strict=True) if step.kind == "convolution"
        )

    @property
    def inputs(self) -> list[np.ndarray]:
        return [self.x] if self.added is None else [self.x, self.added]


def own(name: str) -> list[str]:
    return [one for one in Case(name).info().alternatives if one.startswith("grouped:")]


def expected(case: Case, post_ops: str) -> np.ndarray:
    y = convolution(case.x, case.w, case.attrs, case.bias)
    if post_ops == "relu":
        y = np.maximum(y, 0)
    elif post_ops == "swish":
        y = y / (1 + np.exp(-y))
    return y if case.added is None else y + case.added


@pytest.mark.parametrize("post_ops", POST_OPS)
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_computes_the_convolution(name: str, post_ops: str) -> None:
    kernels = own(name)
    assert kernels, "no kernel takes it here"
    for kernel in kernels:
        case = Case(name, kernel, post_ops, added=post_ops == "swish")
        assert (case.info().implementation, case.info().error) == (kernel, "")
        check(case.builder.run(*case.inputs), expected(case, post_ops), case.w[0].size)


def test_a_module_runs_the_preferred_kernel() -> None:
    (kernel, *_) = own("eight in a group")
    case = Case("eight in a group", kernel)
    module = case.builder.module()
    call(module, case.builder.name, case.x, np.empty(case.shape, "float32"))
    (specialization,) = library.stats(module)["specializations"]
    assert kernel in [step["implementation"] for step in specialization["steps"]]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_groups_and_rows(threads: int) -> None:
    """A few groups are cut into rows, so that every thread has some."""
    for kernel in own("sixteen, every second pixel"):
        case = Case("sixteen, every second pixel", kernel)
        with with_threads(threads):
            check(case.builder.run(case.x), expected(case, "relu"), case.w[0].size)


@pytest.mark.parametrize(
    "shape, weights, groups",
    [
        ((1, 32, 8, 8), (32, 1, 3, 3), 32),
        ((1, 32, 8, 8), (32, 32, 3, 3), 1),
        ((1, 12, 8, 8), (12, 3, 3, 3), 4),
    ],
    ids=["depthwise", "one group", "three in a group"],
)
def test_others_are_left_to_the_library(shape: tuple, weights: tuple, groups: int) -> None:
    CASES["other"] = (shape, weights, ONES, PADDED, ONES, groups)
    try:
        assert not [one for one in own("other") if not one.endswith("sse2")]
    finally:
        del CASES["other"]
