"""The model of costs: the differences between kernels and layouts that choices rest on, one case each."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.builder import ProgramBuilder
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.passes.layout.candidates import in_layout
from tvm_mxplan.passes.layout.costs import BY_MODEL, Machine, ModelCost

LAST, BLOCKED = "acdb", "aBcd16b"


def cost(
    program: ir.Program, layout: str, implementation: str, narrow_share: float | None = None
) -> float:
    (step,) = program.steps
    model = BY_MODEL if narrow_share is None else ModelCost(Machine(narrow_share=narrow_share))
    return model(program, step, in_layout(program, step, layout), StepInfo(implementation, 0, 0, ""))


def convolution(
    channels: int, outputs: int, size: int, kernel: int = 1, batch: int = 1, groups: int = 1
) -> ir.Program:
    b = ProgramBuilder("one")
    x = b.port("input", "x", (batch, channels, size, size), "float32")
    shape: tuple[int, ...] = (outputs, channels, kernel, kernel)
    if groups > 1:
        shape = (groups, outputs // groups, channels // groups, kernel, kernel)
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups)
    operands = [("src", x), ("weights", b.constant(np.zeros(shape, np.float32)))]
    b.step("conv", attrs, (batch, outputs, size, size), operands)
    return b.finish()


def image_step(attrs: ir.Attributes, shape: tuple[int, ...]) -> ir.Program:
    b = ProgramBuilder("one")
    b.step("step", attrs, shape, [("src", b.port("input", "x", shape, "float32"))])
    return b.finish()


def test_output_channels_come_in_whole_vectors() -> None:
    at = {n: cost(convolution(256, n, 14), LAST, "brgconv_1x1:avx512_core") for n in (17, 24, 32, 33)}
    assert at[17] == at[24] == at[32] < at[33]


@pytest.mark.parametrize(
    ("outputs", "groups", "share", "gain"),
    [
        (24, 1, 0.93, 32 / 24 * 0.93),
        (136, 4, 0.93, 0.93),
        (32, 1, 0.93, 0.93),
        (25, 1, 0.93, 0.93),
        (24, 1, 0.5, 32 / 24 * 0.5),
    ],
)
def test_narrow_vectors_leave_less_of_them_empty(
    outputs: int, groups: int, share: float, gain: float
) -> None:
    program = convolution(64 * groups, outputs, 14, groups=groups)
    wide, narrow = (cost(program, LAST, f"brgconv_1x1:{isa}", share) for isa in ("avx512_core", "avx2"))
    assert wide / narrow == pytest.approx(gain)


def test_narrow_vectors_load_more_in_depthwise_convolutions() -> None:
    program = convolution(144, 144, 56, 3, groups=144)
    wide, narrow, least = (
        cost(program, LAST, f"jit_dw:{isa}", 0.93) for isa in ("avx512_core", "avx2", "sse41")
    )
    assert 1.3 * wide < narrow < 0.5 * least


def test_brgconv_reads_odd_depths_as_they_are() -> None:
    odd, whole = convolution(24, 64, 14, 5), convolution(32, 64, 14, 5)
    assert cost(odd, LAST, "brgconv:avx512_core") < cost(whole, LAST, "brgconv:avx512_core")
    assert cost(odd, BLOCKED, "jit:avx512_core") == cost(whole, BLOCKED, "jit:avx512_core")


@pytest.mark.parametrize(("size", "ratio"), [(7, 1.25), (28, 1.05)])
def test_jit_reads_many_weights_again_for_each_row(size: int, ratio: float) -> None:
    """That shows in small images, whose rows are short."""
    program = convolution(512, 512, size, 3)
    found = cost(program, BLOCKED, "jit:avx512_core") / cost(program, LAST, "brgconv:avx512_core")
    assert found == pytest.approx(ratio, abs=0.05)


def test_brgconv_1x1_hides_less_of_memory() -> None:
    small, large = convolution(96, 32, 28), convolution(96, 32, 56, batch=8)
    kernels = (LAST, "brgconv_1x1:avx512_core"), (BLOCKED, "jit_1x1:avx512_core")
    last, blocked = (cost(small, *kernel) for kernel in kernels)
    assert last < blocked
    last, blocked = (cost(large, *kernel) for kernel in kernels)
    assert last > 1.2 * blocked


NEIGHBOURS = [ir.LRN(5, 1e-4, 0.75, 1.0), ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))]


@pytest.mark.parametrize("attrs", NEIGHBOURS)
def test_neighbours_are_read_faster_in_channels_last(attrs: ir.Attributes) -> None:
    program = image_step(attrs, (1, 512, 13, 13))
    assert 1.3 * cost(program, LAST, "jit:avx512_core") < cost(program, BLOCKED, "jit:avx512_core")


def test_depthwise_in_channels_last() -> None:
    program = convolution(272, 272, 14, 3, groups=272)
    assert cost(program, LAST, "brdgmm_dw:avx512_core") < cost(program, BLOCKED, "jit_dw:avx512_core")


def test_what_fits_caches_moves_at_twice_the_speed() -> None:
    relu = ir.Eltwise("relu", 0.0, 0.0)
    half, whole, double = (
        cost(image_step(relu, (1, 64, 64, rows)), LAST, "jit:avx512_core") for rows in (32, 64, 128)
    )
    assert whole == pytest.approx(2 * half)
    assert double == pytest.approx(3 * whole)


def test_large_images_show_behind_pointwise_convolutions_in_channels_last() -> None:
    """Whatever computes them there, so that no other implementation is preferred for it; not in blocks."""
    small, large = convolution(64, 256, 14), convolution(64, 256, 56, batch=8)
    work = 8 * (56 / 14) ** 2
    for name in ("brgconv_1x1", "jit_1x1", "jit"):
        implementation = f"{name}:avx512_core"
        assert cost(large, LAST, implementation) > 1.1 * work * cost(small, LAST, implementation)
        assert cost(large, BLOCKED, implementation) == pytest.approx(
            work * cost(small, BLOCKED, implementation)
        )
    best, other = (cost(large, LAST, f"{name}:avx512_core") for name in ("brgconv_1x1", "jit"))
    assert best < other
