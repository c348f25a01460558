"""The largest of windows by the runtime's own kernel, held against numpy and the library.

Every run is held against the reference of steps by ``Builder.run_stored`` too.  Results are equal, not near.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, windows
from single_steps import without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN = "maxima:"
TYPES = ("uint8", "int8", "bfloat16")
CHANNELS = (1, 3, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 256, 257, 1000)
LAST = {3: "acb", 4: "acdb", 5: "acdeb"}


@dataclass(frozen=True)
class Case:
    """input, channels last -> the largest of windows -> output, channels last.

    ``behind``: padding at the end; ``ceil``: a last window that reaches beyond it counts too.
    """

    src: tuple[int, ...]
    kernel: tuple[int, ...] = (3, 3)
    strides: tuple[int, ...] = (2, 2)
    padding: tuple[int, ...] = (0, 0)
    behind: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    ceil: bool = False
    dtype: str = "uint8"

    @property
    def reach(self) -> list[int]:
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]

    @property
    def dst(self) -> tuple[int, ...]:
        spatial = []
        for i, size in enumerate(self.src[2:]):
            moved = size + self.padding[i] + self.behind[i] - self.reach[i]
            spatial.append((moved + (self.strides[i] - 1 if self.ceil else 0)) // self.strides[i] + 1)
        return (*self.src[:2], *spatial)

    def builder(self, layout: str = "") -> Builder:
        b = Builder()
        layout = layout or LAST[len(self.src)]
        src = b.input(self.src, layout, self.dtype)
        dst = b.output(self.dst, layout, self.dtype)
        b.step(ir.Pooling("max", self.kernel, self.strides, self.padding, self.dilation), src=src, dst=dst)
        return b

    def info(self, layout: str = "") -> StepInfo:
        (found,) = library.describe(self.builder(layout).build()).steps
        assert not found.error, found.error
        return found

    def drawn(self) -> Array:
        """Numbers of the whole type, as (N, ..., C) stores them."""
        shape = (self.src[0], *self.src[2:], self.src[1])
        rng = np.random.default_rng([7, *self.src])
        if self.dtype == "bfloat16":
            wide = rng.standard_normal(shape) * 10.0 ** rng.integers(-30, 30, shape)
            return wide.astype(numpy_type(self.dtype))
        limits = np.iinfo(self.dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(self.dtype)

    @property
    def least(self) -> float:
        return -np.inf if self.dtype == "bfloat16" else np.iinfo(self.dtype).min

    def run(self) -> Array:
        return self.builder().run_stored(self.drawn(), shape=(self.dst[0], *self.dst[2:], self.dst[1]))

    def expected(self, drawn: Array | None = None) -> Array:
        x, axes = np.moveaxis(self.drawn() if drawn is None else drawn, -1, 1), len(self.kernel)
        pads = [(0, 0), (0, 0)]
        for i, (size, places) in enumerate(zip(self.src[2:], self.dst[2:], strict=True)):
            end = (places - 1) * self.strides[i] + self.reach[i] - size - self.padding[i]
            pads.append((self.padding[i], max(end, 0)))
        padded = np.pad(x, pads, constant_values=self.least)
        seen = windows(padded, self.kernel, self.strides, self.dilation)
        places = tuple(slice(n) for n in self.dst)
        largest: Array = seen[places].max(axis=tuple(range(2 + axes, 2 + 2 * axes)))
        return np.moveaxis(largest, 1, -1)


def check(case: Case) -> None:
    for dtype in TYPES:
        typed = Case(**{**vars(case), "dtype": dtype})
        assert typed.info().implementation.startswith(OWN)
        np.testing.assert_array_equal(typed.run(), typed.expected())


WINDOWS = {
    "two by two": Case((2, 17, 10, 12), (2, 2)),
    "side by side": Case((2, 64, 9, 10), (3, 3), (1, 1), (1, 1), (1, 1)),
    "every second": Case((2, 64, 11, 13), (3, 3), (2, 2), (1, 1), (1, 1)),
    "every third": Case((1, 100, 11, 13), (3, 3), (3, 3)),
    "skipping pixels": Case((1, 65, 11, 14), (2, 2), (3, 3)),
    "five, side by side": Case((1, 256, 7, 8), (5, 5), (1, 1), (2, 2), (2, 2)),
    "thirteen, side by side": Case((2, 16, 13, 13), (13, 13), (1, 1), (6, 6), (6, 6)),
    "thirteen of few columns": Case((1, 3, 14, 5), (13, 13), (1, 1), (6, 6), (6, 6)),
    "the whole image": Case((2, 1000, 13, 13), (13, 13), (13, 13)),
    "rows alone": Case((1, 33, 9, 8), (1, 4), (1, 1)),
    "columns alone": Case((1, 33, 9, 8), (4, 1), (2, 1)),
    "one pixel": Case((2, 33, 5, 6), (1, 1), (1, 1)),
    "every second pixel": Case((2, 3, 5, 6), (1, 1)),
    "uneven": Case((1, 40, 12, 17), (2, 5), (3, 1), (1, 3), (0, 2)),
    "padding in front": Case((1, 17, 9, 9), (3, 3), (2, 2), (2, 2)),
    "padding behind": Case((1, 17, 9, 9), (3, 3), (2, 2), (0, 0), (2, 2)),
    "stops short": Case((1, 17, 10, 10), (3, 3), (3, 3)),
    "dilation": Case((2, 20, 12, 13), (3, 3), (1, 1), (2, 2), (2, 2), (2, 2)),
    "dilation that skips": Case((1, 70, 14, 15), (2, 3), (2, 3), (1, 2), (1, 2), (3, 2)),
    "ceil": Case((2, 64, 8, 11), ceil=True),
    "ceil of few channels": Case((2, 3, 12, 9), (2, 3), (3, 2), (1, 1), ceil=True),
    "a line": Case((2, 48, 40), (3,), (2,), (1,), (1,), (1,)),
    "a volume": Case((2, 19, 5, 6, 7), (2, 3, 3), (1, 2, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
    "a volume of vectors": Case((1, 64, 5, 6, 7), (3, 2, 2), (2, 2, 2), (1, 0, 0), (1, 0, 0), (1, 1, 1)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_any_windows(name: str) -> None:
    check(WINDOWS[name])


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("channels", CHANNELS)
def test_any_channels(channels: int, batch: int) -> None:
    check(Case((batch, channels, 7, 9)))
    check(Case((batch, channels, 7, 9), (3, 3), (1, 1), (1, 1), (1, 1)))
    check(Case((batch, channels, 7, 9), (2, 2), ceil=True))


@pytest.mark.parametrize("src", [(1, 64, 9, 1), (1, 3, 1, 9), (1, 1, 9, 9), (3, 65, 1, 1)])
def test_one_column_and_one_row(src: tuple[int, ...]) -> None:
    check(Case(src, tuple(min(n, 3) for n in src[2:]), (1, 1)))


@pytest.mark.parametrize("dtype", TYPES)
def test_where_a_window_has_no_element_stands_the_least_number(dtype: str) -> None:
    """Every second row of windows lies above and below the one that there is."""
    case = Case((1, 5, 1, 4), (2, 2), (1, 1), (1, 1), (1, 1), (2, 2), dtype=dtype)
    assert case.info().implementation.startswith(OWN)
    result = np.full((1, *case.dst[2:], 5), 85, numpy_type(dtype))
    library.trial(case.builder().build(), [])(case.drawn(), result)
    np.testing.assert_array_equal(result, case.expected())
    assert (result == case.least).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "case",
    [
        Case((1, 64, 111, 111)),
        Case((3, 96, 50, 61), (3, 3), (1, 1), (1, 1), (1, 1)),
        Case((1, 130, 4000), (5,), (1,), (2,), (2,), (1,)),  # of one row
        Case((2, 17, 120, 130), (5, 5), (2, 2), (2, 2), (2, 2)),
        Case((2, 400, 40, 40), (40, 40), (40, 40)),  # fewer pixels than threads
    ],
)
def test_threads_share_pixels(case: Case, threads: int) -> None:
    with with_threads(threads):
        check(case)


@pytest.mark.parametrize("case", [Case((1, 64, 9, 8)), Case((2, 3, 9, 8), (3, 3), (1, 1), (1, 1), (1, 1))])
def test_infinities_zeros_and_what_is_no_number(case: Case) -> None:
    """NaN of either sign is larger than any number, as in PyTorch; 0 is not below -0."""
    case = replace(case, dtype="bfloat16")
    chosen = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], numpy_type("bfloat16"))
    x = np.random.default_rng(3).choice(chosen, case.drawn().shape, p=[0.02, 0.02, *[0.16] * 6])
    assert case.info().implementation.startswith(OWN)
    result = np.zeros((case.dst[0], *case.dst[2:], case.dst[1]), x.dtype)
    library.trial(case.builder().build(), [])(x, result)
    expected = case.expected(x)
    assert np.isnan(expected).any() and not np.isnan(expected).all() and np.isneginf(x).any()
    np.testing.assert_array_equal(result.astype("float64"), expected.astype("float64"))
    zeros = (result == 0) & (case.expected(np.where(np.signbit(x), -np.inf, x).astype(x.dtype)) == 0)
    assert zeros.any() and not np.signbit(result[zeros]).any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", WINDOWS)
def test_the_library_gives_the_same(name: str, dtype: str) -> None:
    if dtype == "bfloat16" and OneDNN().lacks(dtype):
        pytest.skip(f"the library has nothing to compare with: {OneDNN().lacks(dtype)}")
    case = replace(WINDOWS[name], dtype=dtype)
    ours, info = case.run(), case.info()
    with without(info):
        again = case.info()
        assert again.implementation and not again.implementation.startswith(OWN)
        assert [one.implementation for one in again.refused] == [info.implementation]
        np.testing.assert_array_equal(case.run(), ours)


def test_what_is_left_to_the_library() -> None:
    for layout in ("abcd", "aBcd16b"):
        assert not Case((1, 16, 9, 9)).info(layout).implementation.startswith(OWN)
    assert not Case((1, 16, 9, 9), dtype="float32").info().implementation.startswith(OWN)


def test_windows_in_padding_alone_are_refused() -> None:
    (info,) = library.describe(Case((1, 16, 9, 9), padding=(3, 0)).builder().build()).steps
    assert "padding alone" in info.error


@pytest.mark.parametrize(
    ("src", "own"),
    [((2, 17, 9, 9), True), ((1, 1, 9, 9), True), ((1, 64, 1, 9), True), ((1, 64, 1, 1), False)],
)
def test_a_result_of_any_layout(src: tuple[int, ...], own: bool) -> None:
    """Channels stay last; one pixel could as well be plain, which its windows would then have to be."""
    case = Case(src, (2, 2), (1, 1), (1, 1), (1, 1))
    asked = case.builder()
    asked.values[1] = replace(asked.values[1], kind="local", layout="any")
    description = library.describe(asked.build())
    assert description.steps[0].implementation.startswith(OWN) == own
    if own:
        assert description.values[1].layout == ("abcd" if src[1] == 1 else "acdb")


def test_the_kernel_is_that_of_the_widest_vectors() -> None:
    name = Case((1, 16, 9, 9)).info().implementation
    allowed = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    if allowed == "SSE41":
        assert not name.startswith(OWN)
    else:
        assert name in ([f"{OWN}avx2"] if allowed == "AVX2" else [f"{OWN}avx512", f"{OWN}avx2"])


@pytest.mark.slow
def test_narrower_vectors() -> None:
    run_again(__file__, "AVX2", "widest or any_windows or any_channels or least_number or share_pixels")


@pytest.mark.slow
def test_no_vectors() -> None:
    run_again(__file__, "SSE41", "widest or left_to_the_library")
