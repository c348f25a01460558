"""Dense convolutions in bfloat16 by our own kernel for AMX, against float64 and the library.

Every run is held against the float64 reference by ``Builder.run_stored``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, call
from scipy import special
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
from single_steps import without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

PIXELS, WINDOWS = "tiles_1x1:avx512_amx", "tiles_windows:avx512_amx"
TANH, GELU_TANH = ir.EltwisePostOp("tanh", 0.0, 0.0), ir.EltwisePostOp("gelu_tanh", 0.0, 0.0)
LOGISTIC = ir.EltwisePostOp("logistic", 0.0, 0.0)


@dataclass(frozen=True)
class Case(ShortConvolution):
    """Dense, or in groups."""

    src: tuple[int, ...]
    channels: int = 40
    window: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    dst: str = BF16
    weights_dtype: str = BF16
    layout: str = LAST
    bias: bool = True
    post_ops: tuple[ir.PostOp, ...] = (RELU,)
    added: str = ""
    preferred: str = "own"
    constant: bool = True

    @property
    def own(self) -> str:
        return PIXELS if self.window == (1, 1) and not any(self.padding) else WINDOWS

    @property
    def filters(self) -> tuple[int, ...]:
        per_group = (self.channels // self.groups, self.src[1] // self.groups, *self.window)
        return per_group if self.groups == 1 else (self.groups, *per_group)

    @property
    def attrs(self) -> ir.Convolution:
        preferred = self.own if self.preferred == "own" else self.preferred
        return ir.Convolution(self.strides, self.padding, self.dilation, self.groups, preferred=preferred)


def has_instructions() -> bool:
    case = Case((1, 32, 9, 9))
    return case.info().implementation == case.own


needs_bfloat16 = pytest.mark.skipif(bool(OneDNN().lacks(BF16)), reason=OneDNN().lacks(BF16))
needs_instructions = pytest.mark.skipif(
    bool(OneDNN().lacks(BF16)) or not has_instructions(), reason="the kernel wants AMX"
)


def check(case: Case) -> Array:
    """The kernel's results, which are the library's but for one rounding."""
    assert case.info().implementation == case.own
    ours = case.run()
    theirs = replace(case, preferred="").run()
    assert replace(case, preferred="").info().implementation != case.own
    assert_one_rounding_apart(ours, theirs, case.dst)
    return ours


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("outputs", [1, 3, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100])
def test_any_channels(outputs: int, dst: str) -> None:
    for inputs in (1, 2, 3, 7, 16, 31, 32, 33, 34, 63, 64, 65, 96, 130):
        check(Case((1, inputs, 5, 7), outputs, dst=dst))
    check(Case((2, 24, 9, 11), outputs, (3, 3), padding=(1, 1, 1, 1), dst=dst))
    check(Case((1, 32, 7, 5), outputs, (3, 3), dst=dst, post_ops=(SWISH,), added="channels"))


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
        ((1, 1), (1, 1), (0, 0, 0, 0)),
        ((1, 1), (2, 2), (0, 0, 0, 0)),
        ((1, 1), (3, 1), (0, 0, 0, 0)),
        ((1, 1), (1, 2), (0, 0, 0, 0)),
        ((7, 3), (3, 2), (3, 1, 3, 1)),
        ((2, 2), (2, 2), (0, 0, 0, 0)),
        ((4, 4), (4, 4), (0, 0, 0, 0)),
        ((4, 4), (1, 1), (1, 2, 2, 1)),
        ((5, 5), (1, 1), (2, 2, 2, 2)),
        ((7, 7), (2, 2), (3, 3, 3, 3)),
        ((9, 9), (8, 8), (4, 4, 4, 4)),
        ((16, 16), (1, 1), (15, 15, 15, 15)),
    ],
)
def test_windows(window: tuple[int, int], strides: tuple[int, int], padding: tuple[int, ...]) -> None:
    for channels in (3, 24, 32, 70):
        check(Case((2, channels, 19, 22), 40, window, strides, padding))


@needs_instructions
@pytest.mark.parametrize("width", range(1, 40))
def test_any_width(width: int) -> None:
    """Lines by themselves and several together, of any length; also those of all images."""
    for stride in (1, 2):
        check(Case((2, 32, 9, width), 20, (3, 3), (stride, stride), (1, 1, 1, 1)))
        check(Case((2, 40, 5, width), 36, (1, 1), (stride, stride)))


@needs_instructions
@pytest.mark.parametrize("dst", [BF16, F32])
@pytest.mark.parametrize("added", ["", "channels", "like dst", "sum"])
@pytest.mark.parametrize(
    "post_ops",
    [
        (),
        (RELU,),
        (CLIP,),
        (LEAKY,),
        (SWISH,),
        (HARD,),
        (GELU,),
        (GELU_TANH,),
        (TANH,),
        (LOGISTIC,),
        (RELU, CLIP),
        (CLIP, RELU),
        (SWISH, CLIP, LEAKY),
    ],
)
def test_post_ops(post_ops: tuple[ir.PostOp, ...], added: str, dst: str) -> None:
    for channels in (8, 88):
        found = check(Case((1, 36, 12, 13), channels, post_ops=post_ops, added=added, dst=dst))
        if post_ops and post_ops[-1] == RELU:
            assert found.min() == 0
        if post_ops[-1:] == (CLIP,):
            assert found.max() == 0.75


@needs_instructions
@pytest.mark.parametrize("function", [SWISH, GELU, GELU_TANH, LOGISTIC, TANH])
def test_functions_are_as_exact_as_bfloat16(function: ir.EltwisePostOp) -> None:
    """Of any size of number, against float64: an error of rounding and one of 2^-15."""
    x = np.concatenate(
        [np.linspace(-12, 12, 4001), np.geomspace(1e-6, 3e38, 200), -np.geomspace(1e-6, 80, 200)]
    )
    rows = x.astype(numpy_type(BF16)).astype("float64")
    b = Builder()
    weights = b.constant(np.ones((1, 1, 1, 1), numpy_type(BF16)))
    roles = {"src": b.input((1, 1, len(x), 1), LAST, BF16), "weights": weights}
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1, preferred=PIXELS)
    b.step(attrs, [function], **roles, dst=b.output((1, 1, len(x), 1), LAST, BF16))
    assert library.describe(b.build()).steps[0].implementation == PIXELS
    found = np.zeros((1, len(x), 1, 1), numpy_type(BF16))
    call(b.module(), b.name, rows.astype(numpy_type(BF16)).reshape(found.shape), found)
    with np.errstate(over="ignore"):
        cubic = 2 * np.sqrt(2 / np.pi) * (rows + 0.044715 * rows**3)
        expected = {
            "swish": rows / (1 + np.exp(-rows)),
            "gelu_erf": rows * special.ndtr(rows),
            "gelu_tanh": rows / (1 + np.exp(-cubic)),
            "logistic": 1 / (1 + np.exp(-rows)),
            "tanh": np.tanh(rows),
        }[function.algorithm]
    apart = np.abs(found.astype("float64").ravel() - expected)
    nothing = 2.0**-120 * np.maximum(np.abs(rows), 1.0)  # the least power that is not taken for 0
    assert np.all(apart <= (2.0**-8 + 2.0**-15) * np.abs(expected) + nothing)


@needs_instructions
def test_no_bias() -> None:
    check(Case((1, 35, 12, 13), bias=False))
    check(Case((1, 35, 12, 13), bias=False, post_ops=(GELU,)))


@needs_instructions
@pytest.mark.parametrize("size", [(512, 512, 7), (640, 1280, 9), (1024, 1600, 3)])
def test_weights_beyond_a_cache_are_read_for_several_groups(size: tuple[int, int, int]) -> None:
    inputs, outputs, side = size
    check(Case((3, inputs, side, side), outputs))
    check(Case((1, inputs, side, side), outputs // 8, (3, 3), padding=(1, 1, 1, 1)))
    check(Case((1, inputs // 8 - 1, side, side), outputs, (5, 5), padding=(2, 2, 2, 2)))


@needs_instructions
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_windows_beside_many_weights(strides: tuple[int, int], threads: int) -> None:
    """In bands of more lines, of all of an image and of a part."""
    with with_threads(threads):
        check(Case((3, 192, 14, 13), 200, (3, 3), strides, (1, 1, 1, 1)))
        check(Case((1, 150, 40, 41), 168, (3, 3), strides, (1, 1, 1, 1)))


@needs_instructions
@pytest.mark.parametrize("channels", [20, 32, 45])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_is_seen(number: float, channels: int) -> None:
    """In the windows that reach it, whatever else is read in their place."""
    for window, post_ops in (((1, 1), ()), ((3, 3), ()), ((3, 3), (CLIP,)), ((3, 3), (LEAKY,)), ((5, 5), ())):
        around = window[0] // 2
        case = Case((1, channels, 12, 12), 40, window, padding=(around,) * 4, post_ops=post_ops)
        assert case.info().implementation == case.own
        src = np.ones((1, 12, 12, channels), numpy_type(BF16))
        src[0, 0, 5, 17] = src[0, 11, 11, 0] = number
        ours = case.result_of(src)
        away = np.ones_like(ours, bool)
        away[0, : around + 1, max(5 - around, 0) : 6 + around] = False
        away[0, 11 - around :, 11 - around :] = False
        assert np.isfinite(ours[away]).all()
        if post_ops != (CLIP,):
            assert not np.isfinite(ours[~away]).any()
        elif np.isnan(number):
            assert np.isnan(ours[~away]).all()
        else:
            assert np.isin(ours[~away], (-0.5, 0.75)).all()


@needs_instructions
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("shape", [(1, 96, 56, 56), (1, 480, 7, 7), (3, 40, 61, 30), (30, 65, 7, 5)])
def test_threads_share_pixels_or_channels(shape: tuple[int, ...], threads: int) -> None:
    with with_threads(threads):
        check(Case(shape, 520))
        check(Case(shape, 330, (3, 3), padding=(1, 1, 1, 1)))


@needs_bfloat16
@pytest.mark.parametrize(
    "case",
    [
        Case((2, 32, 9, 9), 32, layout="aBcd16b"),
        Case((1, 32, 9, 9), groups=2),
        Case((1, 32, 9, 9), window=(3, 3), dilation=(2, 2), padding=(2, 2, 2, 2)),
        Case((1, 8, 20, 20), window=(17, 3), padding=(8, 1, 8, 1)),
        Case((1, 32, 9, 9), constant=False),
        Case((1, 32, 9, 9), weights_dtype=F32),
    ],
    ids=["blocks", "groups", "dilated", "large window", "varying", "float32"],
)
def test_others_are_left_to_the_library(case: Case) -> None:
    found = replace(case, preferred="").info()
    assert case.own not in (found.implementation, *found.alternatives)


@needs_instructions
def test_it_is_an_alternative_that_can_be_refused() -> None:
    case = Case((1, 40, 9, 9))
    other = replace(case, preferred="")
    assert case.own in other.info().alternatives and other.info().implementation != case.own
    with without(case.info()):
        assert "is refused" in case.info().error
        assert case.own not in other.info().alternatives


@pytest.mark.slow
def test_instructions() -> None:
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX512_CORE_BF16":
        assert OneDNN().lacks(BF16) or not has_instructions()
    else:
        run_again(__file__, "AVX512_CORE_BF16", "test_instructions")
