"""Convolutions of each channel by itself in bfloat16 by our own kernel, against float64 and the library.

Every run is held against the float64 reference by ``Builder.run_stored``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, call
from short_convolutions import (
    BF16,
    CLIP,
    F32,
    GELU,
    HARD,
    LAST,
    LEAKY,
    RELU,
    SWISH,
    ShortConvolution,
    assert_one_rounding_apart,
)
from single_steps import with_and_without, without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN, THEIRS = "depthwise:avx512_bf16", "jit_dw:avx512_core_bf16"


@dataclass(frozen=True)
class Case(ShortConvolution):
    """Each channel by itself."""

    src: tuple[int, ...]
    window: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, ...] = (1, 1, 1, 1)
    dilation: tuple[int, int] = (1, 1)
    dst: str = BF16
    weights_dtype: str = BF16
    layout: str = LAST
    bias: bool = True
    post_ops: tuple[ir.PostOp, ...] = (RELU,)
    added: str = ""
    preferred: str = ""
    constant: bool = True

    @property
    def filters(self) -> tuple[int, ...]:
        return (self.src[1], 1, 1, *self.window)

    @property
    def attrs(self) -> ir.Convolution:
        return ir.Convolution(
            self.strides, self.padding, self.dilation, self.src[1], preferred=self.preferred
        )


def has_instructions() -> bool:
    return Case((1, 3, 9, 9)).info().implementation == OWN


needs_bfloat16 = pytest.mark.skipif(bool(OneDNN().lacks(BF16)), reason=OneDNN().lacks(BF16))
needs_instructions = pytest.mark.skipif(
    bool(OneDNN().lacks(BF16)) or not has_instructions(),
    reason="kernels of bfloat16 want AVX-512 with instructions for it",
)


def check(case: Case) -> Array:
    """The kernel's results, which are the library's but for one rounding."""
    ours, theirs = with_and_without(case, OWN)
    assert_one_rounding_apart(ours, theirs, case.dst)
    return ours


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("channels", [2, 3, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65])
def test_any_channels(channels: int, dst: str) -> None:
    check(Case((2, channels, 9, 11), dst=dst))
    check(Case((1, channels, 7, 5), dst=dst, post_ops=(SWISH,), added="channels"))


@needs_instructions
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [
        ((3, 3), (1, 1), (0, 0, 0, 0)),
        ((3, 3), (2, 2), (1, 1, 1, 1)),
        ((3, 3), (2, 2), (0, 0, 1, 1)),
        ((3, 3), (2, 1), (2, 0, 1, 2)),
        ((3, 3), (1, 2), (1, 2, 0, 1)),
        ((1, 3), (1, 1), (0, 1, 0, 1)),
        ((7, 3), (3, 2), (3, 1, 3, 1)),
        ((2, 2), (1, 1), (1, 0, 0, 1)),
        ((4, 4), (1, 1), (1, 2, 2, 1)),
        ((4, 4), (2, 2), (1, 1, 1, 1)),
        ((5, 5), (1, 1), (2, 2, 2, 2)),
        ((5, 5), (2, 2), (2, 2, 2, 2)),
        ((6, 6), (1, 1), (3, 2, 2, 3)),
        ((6, 6), (2, 2), (2, 2, 2, 2)),
        ((7, 7), (1, 1), (3, 3, 3, 3)),
        ((7, 7), (2, 2), (3, 3, 3, 3)),
        ((5, 5), (3, 3), (4, 4, 4, 4)),
        ((9, 9), (8, 8), (4, 4, 4, 4)),
        ((8, 8), (1, 1), (4, 3, 3, 4)),
        ((9, 9), (1, 1), (4, 4, 4, 4)),
        ((1, 11), (1, 2), (0, 5, 0, 5)),
        ((3, 13), (1, 1), (1, 6, 1, 6)),
        ((2, 17), (1, 2), (0, 16, 1, 8)),
    ],
)
def test_windows(window: tuple[int, int], strides: tuple[int, int], padding: tuple[int, ...]) -> None:
    for channels in (24, 70):
        check(Case((2, channels, 19, 22), window, strides, padding))


@needs_instructions
@pytest.mark.parametrize("width", range(1, 20))
def test_any_width(width: int) -> None:
    """Parts of rows of all sizes, and windows wider than the image."""
    for columns in (3, 7, 9):
        for stride in (1, 2):
            around = columns // 2
            check(Case((1, 36, 4, width), (3, columns), (1, stride), (1, around, 1, around)))


@needs_instructions
@pytest.mark.parametrize("channels", [17, 24, 40, 72])
def test_windows_may_be_dilated(channels: int) -> None:
    check(Case((2, channels, 15, 19), padding=(2, 2, 2, 2), dilation=(2, 2)))
    check(Case((1, channels, 9, 21), (3, 5), (1, 2), (1, 8, 1, 8), (1, 4)))
    check(Case((1, channels, 3, 4), (5, 5), padding=(12, 12, 12, 12), dilation=(6, 6)))
    check(Case((1, 40, 15, 9), (3, 3), padding=(4, 1, 4, 1), dilation=(4, 1)))
    check(Case((1, 40, 3, 9), (5, 5), padding=(8, 2, 8, 2), dilation=(4, 1)))


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("added", ["", "channels", "like dst", "sum"])
@pytest.mark.parametrize(
    "post_ops",
    [(), (RELU,), (CLIP,), (LEAKY,), (SWISH,), (HARD,), (GELU,), (RELU, CLIP), (CLIP, RELU), (SWISH, CLIP)],
)
def test_post_ops(post_ops: tuple[ir.PostOp, ...], added: str, dst: str) -> None:
    for channels in (8, 88):
        found = check(Case((1, channels, 12, 13), post_ops=post_ops, added=added, dst=dst))
        if post_ops and post_ops[-1] == RELU:
            assert found.min() == 0
        if CLIP in post_ops:
            assert found.max() == 0.75


@needs_instructions
def test_no_bias() -> None:
    check(Case((1, 35, 12, 13), bias=False))


@needs_instructions
def test_weights_in_float32() -> None:
    """Also of a step that the library has no kernel for."""
    case = Case((1, 35, 12, 13), weights_dtype=F32)
    assert case.info().implementation == OWN
    case.run()


@needs_instructions
@pytest.mark.parametrize("channels", [20, 30, 40])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_is_seen(number: float, channels: int) -> None:
    """In the windows that reach it, of its own channel, as in the library."""
    for window, post_ops in (((3, 3), ()), ((5, 5), (CLIP,)), ((9, 9), ())):
        around = window[0] // 2
        case = Case((1, channels, 12, 12), window, padding=(around,) * 4, post_ops=post_ops)
        assert case.info().implementation == OWN
        src = np.ones((1, 12, 12, channels), numpy_type(BF16))
        src[0, 0, 5, 17] = src[0, 11, 11, 0] = number
        ours = case.result_of(src)
        with without(case.info()):
            theirs = case.result_of(src)
        away = np.ones_like(ours, bool)
        away[0, : around + 1, max(5 - around, 0) : 6 + around, 17] = False
        away[0, 11 - around :, 11 - around :, 0] = False
        assert np.isfinite(ours[away]).all()
        if not post_ops:
            np.testing.assert_array_equal(np.isfinite(ours), away)
            np.testing.assert_array_equal(ours[~away], theirs[~away])
        elif np.isnan(number):
            assert np.isnan(ours[~away]).all()
        else:
            assert np.isin(ours[~away], (-0.5, 0.75)).all()


@needs_instructions
def test_nothing_in_the_padding_is_multiplied() -> None:
    case = Case((1, 40, 5, 5), post_ops=())
    b = case.builder()
    b.constants[0][:] = np.inf
    src = np.ones((1, 5, 5, 40), numpy_type(BF16))
    result = np.zeros(case.stored, numpy_type(BF16))
    assert library.describe(b.build()).steps[0].implementation == OWN
    call(b.module(), b.name, src, result)
    assert np.isposinf(result.astype("float64")).all()  # infinity times zero would be no number


@needs_instructions
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("shape", [(1, 96, 112, 112), (1, 960, 7, 7), (3, 40, 61, 90), (70, 65, 7, 5)])
def test_threads_share_rows_or_channels(shape: tuple[int, ...], threads: int) -> None:
    with with_threads(threads):
        check(Case(shape))


@needs_bfloat16
@pytest.mark.parametrize(
    "case",
    [
        Case((2, 32, 9, 9), layout="aBcd16b"),
        Case((1, 32, 9, 9), window=(3, 1), padding=(1, 0, 1, 0)),
        Case((1, 32, 9, 9), window=(1, 1), padding=(0, 0, 0, 0)),
        Case((1, 32, 12, 12), window=(3, 3), strides=(3, 3), padding=(0, 0, 0, 0)),
        Case((1, 16, 9, 9), dilation=(2, 2), padding=(2, 2, 2, 2)),
        Case((1, 32, 9, 9), window=(3, 2), dilation=(1, 2)),
        Case((1, 32, 9, 9), constant=False),
        Case((1, 32, 9, 9), preferred=THEIRS),
    ],
    ids=[
        "blocks",
        "one column",
        "one pixel",
        "apart",
        "dilated, few",
        "dilated, two",
        "varying",
        "another one",
    ],
)
def test_others_are_left_to_the_library(case: Case) -> None:
    found = case.info()
    assert not found.error and found.implementation != OWN


@needs_instructions
def test_a_refused_kernel_is_onednns() -> None:
    case = Case((1, 40, 9, 9))
    named = replace(case, preferred=OWN)
    assert named.info().implementation == OWN and not named.info().error
    with without(case.info()):
        assert case.info().implementation == THEIRS and not case.info().error
        assert "is refused" in named.info().error
        assert OWN not in case.info().alternatives


@needs_instructions
def test_it_is_an_alternative_of_what_is_preferred() -> None:
    case = Case((1, 40, 9, 9), preferred=THEIRS)
    assert case.info().implementation == THEIRS and OWN in case.info().alternatives


@pytest.mark.slow
def test_instructions() -> None:
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX512_CORE":
        assert OneDNN().lacks(BF16) or not has_instructions()
    else:
        run_again(__file__, "AVX512_CORE", "test_instructions")
