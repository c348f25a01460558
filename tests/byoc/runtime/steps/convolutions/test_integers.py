"""Convolutions of 8-bit integers by the runtime's own kernels, held against float64 and against the library.

Every run is held against the float64 reference by ``Builder.run_stored``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Builder, output_shape
from single_steps import without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

INSTRUCTIONS = {"cpu_isa_avx2": "avx2_words"}.get(library.isa(), "avx512_vnni")
pytestmark = pytest.mark.skipif(
    INSTRUCTIONS != "avx2_words" and ("avx512" not in library.isa() or bool(OneDNN().lacks("int8"))),
    reason=f"kernels want AVX-512 with VNNI or AVX2 alone, oneDNN generates code for {library.isa()}",
)
ONES, NONE, PADDED = (1, 1), (0, 0, 0, 0), (1, 1, 1, 1)
U8, S8, F32, BF16 = "uint8", "int8", "float32", "bfloat16"
LAST = "acdb"
QUANTIZER = [
    ir.EltwisePostOp("round", 0.0, 0.0),
    ir.EltwisePostOp("clip", -128.0, 127.0),
    ir.EltwisePostOp("linear", 0.75, 1.5),
]
RELU, SWISH = ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("swish", 1.0, 0.0)


@dataclass(frozen=True)
class Case:
    """input, channels last -> convolution -> output, channels last."""

    src: tuple[int, ...]
    outputs: int
    window: int = 1
    strides: tuple[int, int] = ONES
    padding: tuple[int, ...] = NONE
    groups: int = 1
    dilation: tuple[int, int] = ONES
    types: tuple[str, str] = (U8, U8)
    zeros: tuple[int, int] = (3, 9)
    spread: float = 1.0
    each: bool = True
    bias: bool = True
    post_ops: tuple[ir.PostOp, ...] = ()
    added: str = ""
    seed: int = 0

    @property
    def attrs(self) -> ir.Convolution:
        return ir.Convolution(self.strides, self.padding, self.dilation, self.groups)

    @property
    def weights(self) -> tuple[int, ...]:
        return (self.outputs, self.src[1] // self.groups, self.window, self.window)

    @property
    def dst(self) -> tuple[int, ...]:
        return output_shape(self.src, self.weights, self.attrs)

    def builder(self, preferred: str = "") -> Builder:
        rng, b = np.random.default_rng([self.seed, *self.src, self.outputs]), Builder()
        weights = rng.integers(-128, 128, self.weights).astype("int8")
        if self.groups > 1:
            weights = weights.reshape(self.groups, self.outputs // self.groups, *self.weights[1:])
        terms = int(np.prod(self.weights[1:]))
        count = self.outputs if self.each else 1
        scales = rng.uniform(0.5, 2.0, count) / (74 * 74 * terms**0.5 * 0.02)
        roles: dict[str, Any] = {
            "src": b.input(self.src, LAST, self.types[0]),
            "weights": b.constant(weights),
            "src_scale": b.constant(np.float32([0.02])),
            "weights_scale": b.constant(scales.astype("float32")),
        }
        if self.bias:
            roles["bias"] = b.constant(rng.standard_normal(self.outputs).astype("float32"))
        if self.zeros[0]:
            roles["src_zero_point"] = b.constant(np.int32([self.zeros[0]]))
        if self.types[1] in (U8, S8):
            roles["dst_scale"] = b.constant(np.float32([self.spread / 64]))
            roles["dst_zero_point"] = b.constant(np.int32([self.zeros[1]]))
        post_ops = list(self.post_ops)
        if self.added == "sum":
            added = b.input(self.dst, LAST, self.types[1])
            before = b.local(self.dst, LAST, dtype=self.types[1])
            b.step(ir.Reorder(), src=added, dst=before)
            roles["dst"] = b.view(before, self.dst, LAST)
            b.values[-1] = ir.Value(**{**vars(b.values[-1]), "dtype": self.types[1]})
            post_ops.append(ir.SumPostOp(0.5))
        elif self.added in (U8, S8, F32):
            post_ops.append(ir.BinaryPostOp("add", b.input(self.dst, LAST, self.added)))
        elif self.added == "channels":
            row = rng.uniform(0.5, 1.5, (1, self.outputs, 1, 1)).astype("float32")
            post_ops.append(ir.BinaryPostOp("mul", b.constant(row)))
        if self.added == "sum":
            post_ops.append(RELU)
            out = b.output(self.dst, LAST, self.types[1])
            attrs = ir.Convolution(
                self.strides, self.padding, self.dilation, self.groups, preferred=preferred
            )
            b.step(attrs, post_ops, **roles)
            b.step(ir.Reorder(), src=roles["dst"], dst=out)
            return b
        roles["dst"] = b.output(self.dst, LAST, self.types[1])
        attrs = ir.Convolution(self.strides, self.padding, self.dilation, self.groups, preferred=preferred)
        b.step(attrs, post_ops, **roles)
        return b

    def info(self, preferred: str = "") -> StepInfo:
        builder = self.builder(preferred)
        steps = library.describe(builder.build()).steps
        (found,) = (
            s for s, step in zip(steps, builder.steps, strict=True) if isinstance(step.attrs, ir.Convolution)
        )
        return found

    def own(self) -> list[str]:
        info = self.info()
        return [name for name in (info.implementation, *info.alternatives) if name.startswith("integers_")]

    def run(self, preferred: str = "") -> np.ndarray:
        rng = np.random.default_rng(7)

        def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
            stored = (shape[0], *shape[2:], shape[1])
            if dtype not in (U8, S8):
                return rng.standard_normal(stored).astype(numpy_type(dtype))
            limits = np.iinfo(dtype)
            return rng.integers(limits.min, limits.max + 1, stored).astype(dtype)

        inputs = [drawn(self.src, self.types[0])]
        if self.added in ("sum", U8, S8, F32):
            inputs.append(drawn(self.dst, self.types[1] if self.added == "sum" else self.added))
        n, c, h, w = self.dst
        return self.builder(preferred).run_stored(*inputs, shape=(n, h, w, c))


def in_the_library(case: Case) -> np.ndarray:
    info = case.info()
    if info.implementation in case.own():
        with without(info):
            assert case.own() == []
            return case.run()
    return case.run()


def check(case: Case) -> np.ndarray:
    """The results of every kernel that takes it, which are the library's but for numbers half way."""
    kernels = case.own()
    assert kernels, "no kernel takes it here"
    expected = in_the_library(case).astype("float64")
    for name in kernels:
        info = case.info(name)
        assert (info.implementation, info.error) == (name, "")
        actual = case.run(name).astype("float64")
        apart = np.abs(actual - expected)
        if case.types[1] in (U8, S8):
            assert apart.max(initial=0) <= 1
            assert np.mean(apart > 0) < 1e-3
        else:
            one = 2.0**-7 if case.types[1] == BF16 else 2.0**-20
            assert np.all(apart <= one * (1.0 + np.abs(expected)))
    return actual


POINTWISE = [(1, 3), (3, 1), (17, 63), (63, 17), (65, 65), (16, 130), (96, 24), (144, 48), (700, 40)]
DENSE = [(1, 3), (3, 16), (3, 64), (5, 17), (16, 64), (19, 130), (64, 33)]
DEPTHWISE = [1, 3, 17, 24, 32, 63, 64, 65, 96, 144, 200]


@pytest.mark.parametrize("types", [(U8, U8), (S8, S8), (U8, F32), (S8, BF16), (U8, S8), (S8, U8)])
@pytest.mark.parametrize(("inputs", "outputs"), POINTWISE)
def test_pointwise_of_any_channels_and_types(inputs: int, outputs: int, types: tuple[str, str]) -> None:
    signed = types[0] == S8
    check(Case((2, inputs, 7, 5), outputs, types=types, zeros=(-4 if signed else 131, 5)))


@pytest.mark.parametrize("types", [(U8, U8), (S8, S8), (U8, F32), (S8, BF16)])
@pytest.mark.parametrize("channels", DEPTHWISE)
def test_depthwise_of_any_channels_and_types(channels: int, types: tuple[str, str]) -> None:
    signed = types[0] == S8
    case = Case((2, channels, 9, 11), channels, 3, padding=PADDED, groups=channels, types=types)
    check(Case(**{**vars(case), "zeros": (-4 if signed else 131, 5)}))
    family = "integers_windows" if channels == 1 else "integers_dw"
    assert f"{family}:{INSTRUCTIONS}" in case.own()
    assert {name.partition(":")[0] for name in case.own()} == {family}


@pytest.mark.parametrize("types", [(U8, U8), (S8, S8), (U8, F32), (S8, BF16)])
@pytest.mark.parametrize(("inputs", "outputs"), DENSE)
def test_dense_of_any_channels_and_types(inputs: int, outputs: int, types: tuple[str, str]) -> None:
    signed = types[0] == S8
    case = Case((2, inputs, 9, 7), outputs, 3, padding=PADDED, types=types)
    check(Case(**{**vars(case), "zeros": (-4 if signed else 131, 5)}))


@pytest.mark.parametrize("strides", [(2, 2), (1, 2), (2, 1), (3, 3)])
@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 1), (3, 40)])
def test_pixels_that_are_skipped(window: int, groups: int, strides: tuple[int, int]) -> None:
    padding = NONE if window == 1 else PADDED
    check(Case((2, 40, 15, 17), 40, window, strides, padding, groups))


@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [
        (5, ONES, (2, 2, 2, 2)),
        (5, (2, 2), (1, 2, 2, 1)),
        (7, (3, 3), (3, 3, 3, 3)),
        (2, ONES, (1, 0, 0, 1)),
        (3, ONES, NONE),
        (3, (1, 1), (2, 0, 1, 2)),
        (1, ONES, NONE),
        (1, (2, 2), NONE),
    ],
)
@pytest.mark.parametrize(("inputs", "groups"), [(24, 24), (24, 1), (3, 1)])
def test_windows(
    inputs: int, groups: int, window: int, strides: tuple[int, int], padding: tuple[int, ...]
) -> None:
    check(Case((2, inputs, 13, 12), 24, window, strides, padding, groups))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 3, 224, 224), (3, 3, 61, 700), (1, 40, 90, 91), (1, 3, 30, 40001)])
def test_bands_of_images_that_no_cache_holds(shape: tuple[int, ...]) -> None:
    check(Case(shape, 17, 7, (2, 2), (3, 3, 3, 3)))


@pytest.mark.parametrize("zeros", [(0, 0), (255, 255), (0, 255), (128, 0)])
@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 1), (3, 48)])
def test_both_ends_of_the_types(window: int, groups: int, zeros: tuple[int, int]) -> None:
    """Results reach both ends, and are cut off there."""
    padding = NONE if window == 1 else PADDED
    narrow = Case((1, 48, 16, 16), 48, window, padding=padding, groups=groups, zeros=zeros, spread=0.05)
    found = check(narrow)
    assert (found.min(), found.max()) == (0, 255)
    assert np.mean(found == 255) > 0.01 or zeros[1] == 0
    signed = Case(**{**vars(narrow), "types": (S8, S8), "zeros": (zeros[0] - 128, zeros[1] - 128)})
    found = check(signed)
    assert (found.min(), found.max()) == (-128, 127)


@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 1), (3, 48)])
def test_integers_that_fit_into_no_word_before_they_are_cut_off(window: int, groups: int) -> None:
    padding = NONE if window == 1 else PADDED
    found = check(Case((1, 48, 8, 8), 48, window, padding=padding, groups=groups, spread=1e-9))
    assert np.mean(found == 0) + np.mean(found == 255) > 0.99 and 0.3 < np.mean(found == 255) < 0.7


@pytest.mark.parametrize("types", [(U8, U8), (S8, S8)])
@pytest.mark.parametrize("added", ["", "sum", U8, S8, F32, "channels"])
@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 1), (3, 33)])
def test_post_ops(window: int, groups: int, added: str, types: tuple[str, str]) -> None:
    padding = NONE if window == 1 else PADDED
    case = Case((1, 33, 9, 8), 33, window, padding=padding, groups=groups, types=types, zeros=(0, 0))
    check(Case(**{**vars(case), "post_ops": tuple(QUANTIZER), "added": added}))
    check(Case(**{**vars(case), "types": (types[0], F32), "post_ops": (SWISH,), "added": added}))


@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 1), (3, 20)])
def test_one_scale_and_no_bias(window: int, groups: int) -> None:
    padding = NONE if window == 1 else PADDED
    check(Case((1, 20, 6, 6), 20, window, padding=padding, groups=groups, each=False, bias=False))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(2, 64, 28, 28), (1, 512, 7, 7)])
def test_threads_share_pixels_and_channels(shape: tuple[int, ...], threads: int) -> None:
    with with_threads(threads):
        check(Case(shape, 321))
        check(Case(shape, 35, 3, padding=PADDED))
        check(Case(shape, shape[1], 3, padding=PADDED, groups=shape[1]))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_windows_beside_many_weights(strides: tuple[int, int], threads: int) -> None:
    """By tiles in bands of more lines, of all of an image and of a part."""
    with with_threads(threads):
        check(Case((3, 256, 14, 13), 272, 3, strides, PADDED))
        check(Case((1, 200, 40, 41), 230, 3, strides, PADDED))


@pytest.mark.parametrize(
    "case",
    [
        Case((1, 32, 9, 9), 32, 3, padding=(2, 2, 2, 2), dilation=(2, 2)),
        Case((1, 32, 8, 8), 32, groups=4),
        Case((1, 32, 8, 8), 64, 3, padding=PADDED, groups=32),
        Case((1, 32, 9, 9), 32, 3, padding=(2, 2, 2, 2), groups=32, dilation=(2, 2)),
    ],
    ids=["dilated window", "groups", "several of a channel", "dilated"],
)
def test_others_are_left_to_the_library(case: Case) -> None:
    assert case.info().error == ""
    assert not case.own()


@pytest.mark.skipif("amx" not in library.isa(), reason="kernels want AMX")
def test_tiles_are_an_implementation_of_dense_ones() -> None:
    """Whole steps of a row in their place, rows that are copied, steps that are narrow."""
    for shape, window in (
        ((1, 64, 9, 40), 3),
        ((1, 24, 9, 40), 3),
        ((1, 100, 9, 40), 1),
        ((1, 20, 9, 40), 1),
    ):
        padding = PADDED if window == 3 else NONE
        case = Case(shape, 70, window, padding=padding)
        assert f"integers_{'windows' if window == 3 else '1x1'}:avx512_amx" in case.own()
        check(case)


@pytest.mark.skipif("amx" not in library.isa(), reason="the tests above run without AMX")
def test_instructions_without_tiles() -> None:
    run_again(__file__, "AVX512_CORE_FP16", "test_post_ops or test_pixels or test_both_ends")


@pytest.mark.skipif("avx512" not in library.isa(), reason="the tests above run with AVX2 alone")
def test_instructions() -> None:
    """As with a processor that has AVX2 alone."""
    run_again(__file__, "AVX2", "test_post_ops or test_pixels or test_both_ends")
