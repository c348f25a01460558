"""Convolutions with few output channels, transposed ones too, by our own kernels, against float64.

Every run is held against the float64 reference by ``Builder.run``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, call, output_shape, random
from single_steps import with_and_without, without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout.layout import channels_blocked, channels_last, plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OURS = "few_outputs:"
FORMS = ("plain", "last", "blocked")
TANH = ir.EltwisePostOp("tanh", 0.0, 0.0)


def layout(rank: int, form: str) -> str:
    named = {"plain": plain_layout(rank), "last": channels_last(rank), "blocked": channels_blocked(rank, 16)}
    return named[form]


@dataclass(frozen=True)
class Case:
    """input -> reorder -> convolution -> reorder -> output."""

    src: tuple[int, ...]
    outputs: int
    window: tuple[int, ...]
    padding: tuple[int, ...] = ()  # none: as much around the window's centre
    strides: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    transposed: bool = False
    source: str = "blocked"
    result: str = "plain"
    post_ops: tuple[ir.PostOp, ...] = ()
    added: str = ""
    bias: bool = True
    groups: int = 1
    constant: bool = True
    preferred: str = ""

    @property
    def attrs(self) -> ir.Convolution | ir.Deconvolution:
        ones = (1,) * len(self.window)
        around = tuple((k - 1) // 2 for k in self.window) * 2
        geometry: Any = (self.strides or ones, self.padding or around, self.dilation or ones, self.groups)
        if self.transposed:
            return ir.Deconvolution(*geometry)
        return ir.Convolution(*geometry, preferred=self.preferred)

    @property
    def filters(self) -> tuple[int, ...]:
        lead = (self.outputs // self.groups, self.src[1] // self.groups)
        return (*((self.groups,) if self.groups > 1 else ()), *lead, *self.window)

    @property
    def dst(self) -> tuple[int, ...]:
        attrs, axes = self.attrs, len(self.window)
        if isinstance(attrs, ir.Convolution):
            return output_shape(self.src, (self.outputs, 0, *self.window), attrs)
        extents = [
            (size - 1) * stride + (k - 1) * step + 1 - front - back
            for size, stride, k, step, front, back in zip(
                self.src[2:],
                attrs.strides,
                self.window,
                attrs.dilation,
                attrs.padding[:axes],
                attrs.padding[axes:],
                strict=True,
            )
        ]
        return (self.src[0], self.outputs, *extents)

    def builder(self, stored: bool = False) -> Builder:
        b, rank = Builder(), len(self.src)
        source, result = layout(rank, self.source), layout(rank, self.result)
        src = b.reorder(b.input(self.src), source)
        dst = b.output(self.dst, result) if stored else b.local(self.dst, result)
        weights = random(*self.filters)
        operands: dict[str, int] = {
            "src": src,
            "weights": b.constant(weights) if self.constant else b.input(weights.shape),
        }
        if self.bias:
            operands["bias"] = b.constant(random(self.outputs, seed=1))
        ops = list(self.post_ops)
        if self.added == "channels":
            ops.append(ir.BinaryPostOp("mul", b.constant(random(1, self.outputs, *[1] * (rank - 2), seed=2))))
        elif self.added == "like dst":
            ops.insert(0, ir.BinaryPostOp("add", b.reorder(b.input(self.dst), result)))
        b.step(self.attrs, ops, **operands, dst=dst)
        if not stored:
            b.finish(dst)
        return b

    def info(self) -> StepInfo:
        b = self.builder()
        steps = zip(library.describe(b.build()).steps, b.steps, strict=True)
        return next(told for told, step in steps if step.kind in ("convolution", "deconvolution"))

    @property
    def inputs(self) -> list[Array]:
        found = [random(*self.src, seed=3)]
        if not self.constant:
            found.append(random(*self.filters))
        return found + ([random(*self.dst, seed=4)] if self.added == "like dst" else [])

    def run(self) -> Array:
        return self.builder().run(*self.inputs)


IMAGE = Case((1, 32, 11, 37), 3, (3, 3))
has_kernels = IMAGE.info().implementation.startswith(OURS)
needs_kernels = pytest.mark.skipif(not has_kernels, reason="the kernels want AVX2")


def check(case: Case) -> None:
    assert case.info().implementation.startswith(OURS), case
    case.run()


@needs_kernels
@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("inputs", [1, 2, 7, 15, 16, 17, 40, 63, 64, 65, 130])
def test_any_channels(inputs: int, outputs: int) -> None:
    if IMAGE.info().implementation == "few_outputs:avx2" and outputs > 4:
        pytest.skip("more than half a vector of AVX2")
    for form in FORMS:
        check(Case((2, inputs, 5, 19), outputs, (3, 3), source=form))


@needs_kernels
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("result", FORMS)
@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("added", ["", "channels", "like dst"])
def test_layouts_and_post_ops(source: str, result: str, added: str, transposed: bool) -> None:
    strides = (2, 2) if transposed else ()
    for post_ops in ((), (TANH,)):
        check(
            Case(
                (2, 24, 9, 21),
                3,
                (4, 3),
                strides=strides,
                transposed=transposed,
                source=source,
                result=result,
                post_ops=post_ops,
                added=added,
            )
        )


@needs_kernels
@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 31, 33, 47, 48, 49, 60, 97, 150])
def test_any_width(width: int) -> None:
    for window in (2, 3, 7):
        check(Case((1, 20, 3, width), 2, (2, window), (1, window - 1, 1, window - 1)))
        check(
            Case((1, 20, 3, width), 2, (2, window), (0, 0, 0, 0), strides=(1, 2), transposed=True, bias=False)
        )


@needs_kernels
@pytest.mark.parametrize(
    "case",
    [
        Case((1, 16, 300), 1, (7,)),
        Case((2, 16, 9000), 2, (5,), dilation=(3,)),
        Case((1, 16, 1200), 1, (16,), (4, 4), (8,), transposed=True),
        Case((1, 16, 11, 12), 3, (4, 4), (1, 1, 1, 1), (2, 2), transposed=True),
        Case((1, 16, 11, 12), 3, (5, 2), (2, 0, 1, 1), (3, 4), (2, 3), transposed=True),
        Case((1, 16, 11, 12), 1, (9, 9), (4, 4, 4, 4), (3, 3), transposed=True),
        Case((1, 16, 4, 5), 1, (9, 9), (8, 8, 8, 8)),
        Case((1, 16, 4, 5), 1, (2, 2), (7, 9, 6, 8)),
        Case((1, 16, 20, 21), 2, (3, 5), (6, 0, 2, 4), dilation=(3, 2)),
        Case((1, 16, 9, 70), 2, (1, 9)),
        Case((1, 16, 70, 9), 2, (9, 1)),
        Case((2, 8, 6, 7, 20), 2, (3, 3, 3)),
        Case((1, 8, 9, 8, 7), 2, (5, 5, 5), (2, 2, 2, 2, 2, 2)),
        Case((1, 8, 9, 8, 7), 1, (2, 1, 3), (0, 0, 1, 1, 2, 1), dilation=(3, 1, 1)),
        Case((1, 8, 5, 6, 7), 3, (2, 2, 2), (0,) * 6, (2, 2, 2), transposed=True),
        Case((1, 8, 24, 40, 40), 2, (3, 3, 3)),
    ],
    ids=lambda case: f"{case.src}-{case.window}-{'t' if case.transposed else 'c'}",
)
def test_windows(case: Case) -> None:
    check(case)
    check(replace(case, source="plain", result="last"))


@needs_kernels
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "shape, window", [((1, 16, 3, 200), (3, 3)), ((1, 16, 9000), (9,)), ((3, 16, 8, 9, 40), (3, 3, 3))]
)
def test_threads_share_parts(shape: tuple[int, ...], window: tuple[int, ...], threads: int) -> None:
    with with_threads(threads):
        check(Case(shape, 2, window))
        check(Case(shape, 2, window, strides=(2,) * len(window), transposed=True))


@needs_kernels
def test_what_fills_a_block_is_zero() -> None:
    case = Case((2, 16, 5, 9), 3, (3, 3), result="blocked", post_ops=(TANH,))
    result = np.full((2, 1, 5, 9, 16), np.nan, "float32")
    b = case.builder(stored=True)
    call(b.module(), b.name, *case.inputs, result)
    assert np.abs(result[..., :3]).min() > 0
    np.testing.assert_array_equal(result[..., 3:], 0)


@needs_kernels
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_stays_where_it_is_seen(number: float) -> None:
    case = Case((1, 20, 9, 40), 2, (3, 3))
    x = np.ones(case.src, "float32")
    x[0, 5, 4, 20] = number
    b = case.builder(stored=True)
    result = np.empty(case.dst, "float32")
    call(b.module(), b.name, x, result)
    away = np.ones(case.dst, bool)
    away[:, :, 3:6, 19:22] = False
    np.testing.assert_array_equal(np.isfinite(result), away)


@pytest.mark.parametrize(
    "case",
    [
        replace(IMAGE, outputs=9),
        replace(IMAGE, window=(1, 1)),
        replace(IMAGE, constant=False),
        replace(IMAGE, strides=(2, 1), source="last", result="last"),
        Case((1, 8, 9, 9), 4, (3, 3), groups=2, source="last", result="last"),
    ],
    ids=["many", "pointwise", "varying", "strides", "groups"],
)
def test_others_are_left_to_the_library(case: Case) -> None:
    found = case.info()
    assert not found.error
    assert not found.implementation.startswith(OURS)


@needs_kernels
@pytest.mark.parametrize("transposed", [False, True])
def test_a_refused_kernel_is_onednns(transposed: bool) -> None:
    case = replace(IMAGE, source="last", result="last", transposed=transposed)
    ours, theirs = with_and_without(case, case.info().implementation)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@needs_kernels
def test_kernels_are_alternatives_of_each_other() -> None:
    first = IMAGE.info()
    with without(first):
        second = IMAGE.info()
    if first.implementation == "few_outputs:avx512":
        assert second.implementation == "few_outputs:avx2"
    library_first = replace(IMAGE, source="last", result="last", preferred="jit:avx2").info()
    offered: Sequence[str] = library_first.alternatives
    assert first.implementation in offered
    named = replace(IMAGE, preferred=first.implementation)
    assert named.info().implementation == first.implementation
    named.run()


@pytest.mark.slow
def test_narrow_vectors() -> None:
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2":
        assert IMAGE.info().implementation == "few_outputs:avx2"
    else:
        run_again(__file__, "AVX2", "not no_kernels")


@pytest.mark.slow
def test_no_kernels() -> None:
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "SSE41":
        assert not has_kernels
    else:
        run_again(__file__, "SSE41", "left_to_the_library or no_kernels")
