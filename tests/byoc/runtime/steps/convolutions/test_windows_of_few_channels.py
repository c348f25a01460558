"""Convolutions of few channels in bfloat16 by the runtime's own kernel, held against float64 and the library.

Every run is held against the float64 reference by ``Builder.run_stored``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array
from short_convolutions import (
    BF16,
    BLOCKS,
    CLIP,
    F32,
    LAST,
    RELU,
    SWISH,
    ShortConvolution,
    assert_one_rounding_apart,
)
from single_steps import without

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN = "windows:avx512_bf16"
MISSING = OneDNN().lacks("bfloat16")
"""The reason that nothing runs in bfloat16, '' if something does."""
LOWER = ir.EltwisePostOp("linear", 0.75, -0.25)


@dataclass(frozen=True)
class Case(ShortConvolution):
    """Dense, of an image with channels last."""

    src: tuple[int, ...]
    channels: int = 32
    window: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (2, 2)
    padding: tuple[int, ...] = (1, 1, 1, 1)
    dilation: tuple[int, int] = (1, 1)
    dst: str = BF16
    weights_dtype: str = BF16
    layout: str = LAST
    bias: bool = True
    post_ops: tuple[ir.PostOp, ...] = (RELU,)
    added: str = ""
    preferred: str = OWN
    constant: bool = True

    @property
    def filters(self) -> tuple[int, ...]:
        return (self.channels, self.src[1], *self.window)

    @property
    def attrs(self) -> ir.Convolution:
        return ir.Convolution(self.strides, self.padding, self.dilation, 1, preferred=self.preferred)

    @property
    def src_layout(self) -> str:
        return LAST

    def theirs(self) -> Case:
        return replace(self, preferred="")

    def takes_it(self) -> bool:
        return OWN in self.theirs().info().alternatives


def has_instructions() -> bool:
    return Case((1, 3, 9, 9)).takes_it()


needs_instructions = pytest.mark.skipif(
    not has_instructions(), reason="kernels of bfloat16 want AVX-512 with instructions for it"
)


def check(case: Case) -> Array:
    """The kernel's results, which are the library's but for one rounding."""
    info = case.info()
    assert (info.implementation, info.error) == (OWN, "")
    actual = case.run()
    theirs = case.theirs()
    expected = (replace(theirs, layout=LAST) if case.added != "like dst" else theirs).run()
    if case.layout == BLOCKS and case.added != "like dst":
        n, c, h, w = case.result
        expected = np.pad(expected, [(0, 0)] * 3 + [(0, -c % 16)])
        expected = expected.reshape(n, h, w, -1, 16).transpose(0, 3, 1, 2, 4)
    assert_one_rounding_apart(actual, expected, case.dst)
    return actual


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("channels", range(1, 16))
def test_any_channels_of_the_source(channels: int, dst: str) -> None:
    check(Case((2, channels, 9, 11), dst=dst))


@needs_instructions
@pytest.mark.parametrize("layout", [LAST, BLOCKS])
@pytest.mark.parametrize("outputs", [16, 32, 48, 64, 80, 112, 384])
def test_any_whole_vectors_of_the_result(outputs: int, layout: str) -> None:
    check(Case((2, 3, 9, 31), outputs, layout=layout))
    check(Case((1, 3, 9, 31), outputs, layout=layout, dst=F32, post_ops=(SWISH,)))


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("layout", [LAST, BLOCKS])
@pytest.mark.parametrize("added", ["", "channels", "like dst"])
@pytest.mark.parametrize("post_ops", [(), (RELU,), (LOWER,), (SWISH,)])
def test_a_part_of_a_vector(post_ops: tuple[ir.PostOp, ...], added: str, layout: str, dst: str) -> None:
    """Behind it blocks have zeros, which the reference's reading holds, and pixels the next one."""
    for outputs in (1, 15, 17, 24, 72, 88):
        check(Case((2, 3, 9, 13), outputs, dst=dst, layout=layout, added=added, post_ops=post_ops))


@needs_instructions
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [
        ((7, 7), (2, 2), (3, 3, 3, 3)),
        ((11, 11), (4, 4), (2, 2, 2, 2)),
        ((16, 16), (8, 8), (0, 0, 0, 0)),
        ((3, 3), (1, 1), (1, 1, 1, 1)),
        ((2, 2), (1, 1), (1, 0, 0, 1)),
        ((3, 3), (1, 1), (2, 0, 1, 2)),
        ((5, 2), (3, 1), (4, 1, 0, 0)),
        ((1, 1), (1, 1), (0, 0, 0, 0)),
        ((1, 1), (2, 2), (0, 0, 0, 0)),
        ((1, 6), (1, 3), (0, 5, 0, 2)),
    ],
)
def test_windows(window: tuple[int, int], strides: tuple[int, int], padding: tuple[int, ...]) -> None:
    for channels in (1, 3, 4):
        check(Case((2, channels, 19, 22), 48, window, strides, padding))


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("added", ["", "channels", "like dst"])
@pytest.mark.parametrize(
    "post_ops", [(), (RELU,), (CLIP,), (LOWER, RELU), (SWISH,), (RELU, CLIP), (CLIP, RELU)]
)
def test_post_ops(post_ops: tuple[ir.PostOp, ...], added: str, dst: str) -> None:
    found = check(Case((1, 3, 12, 13), post_ops=post_ops, added=added, dst=dst))
    if post_ops and post_ops[-1] == RELU:
        assert found.min() == 0
    if CLIP in post_ops:
        assert found.max() == 0.75


@needs_instructions
def test_no_bias() -> None:
    check(Case((1, 3, 12, 13), bias=False))


@needs_instructions
def test_what_is_no_number_stays() -> None:
    case = Case((1, 3, 8, 8), window=(1, 1), strides=(1, 1), padding=(0,) * 4, post_ops=(RELU, CLIP))
    x = np.ones((1, 8, 8, 3), numpy_type(BF16))
    x[0, 2, 3, 0] = np.nan  # beside the last number of the window before
    result = case.result_of(x)
    assert np.isnan(result[0, 2, 3]).all() and np.isnan(result).sum() == case.outputs


@needs_instructions
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("shape", [(1, 3, 224, 224), (3, 3, 61, 700), (1, 1, 30, 40001), (5, 4, 3, 3)])
def test_threads_share_bands_of_images(shape: tuple[int, ...], threads: int) -> None:
    """Also of images of which no cache holds a band."""
    with with_threads(threads):
        check(Case(shape, 32, (7, 7), (2, 2), (3, 3, 3, 3)))


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize(
    "case",
    [
        Case((1, 16, 9, 9)),
        Case((1, 3, 9, 9), padding=(2, 2, 2, 2), dilation=(2, 2)),
        Case((1, 3, 99, 99), window=(17, 17)),
        Case((1, 3, 99, 99), strides=(9, 9)),
    ],
    ids=["many channels", "dilated", "a large window", "a large stride"],
)
def test_others_are_left_to_the_library(case: Case) -> None:
    assert case.theirs().info().error == ""
    assert not case.takes_it()


@needs_instructions
def test_a_refused_kernel_is_onednns() -> None:
    case = Case((1, 3, 9, 9))
    with without(case.info()):
        assert "is refused" in case.info().error
        assert not case.takes_it() and not case.theirs().info().error


@pytest.mark.slow
def test_instructions() -> None:
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX512_CORE":
        assert not has_instructions()
    else:
        run_again(__file__, "AVX512_CORE", "test_instructions")
