"""Costs of our kernels for narrow groups, gradients and recurrent layers: formulas by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs import implementation_named
from tvm_mxplan.byoc.onednn.costs.groups import rate_in_groups, scattered_us
from tvm_mxplan.byoc.onednn.costs.kernels import computing_us, hides, shown_share, weights_passes
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.core.machine import KernelRate, MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.passes.layout.candidates import in_layout

PEAK = 480.0
MACHINE = rates(PEAK)
LAST = "acdb"


def convolution(groups: int, outputs: int, inputs: int, size: int = 14, kernel: int = 3) -> ir.Program:
    """A convolution in groups of so many channels each."""
    b = ProgramBuilder("one")
    x = b.port("input", "x", (2, groups * inputs, size, size), "float32")
    weights = b.constant(np.zeros((groups, outputs, inputs, kernel, kernel), np.float32))
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups)
    b.step("conv", attrs, (2, groups * outputs, size, size), [("src", x), ("weights", weights)])
    return b.finish()


def gradient(groups: int = 1) -> ir.Program:
    """The gradient of 32 filters of 3x3 over 16 channels, from images of 14x14."""
    b = ProgramBuilder("one")
    x = b.port("input", "x", (2, 16, 14, 14), "float32")
    grad = b.port("input", "g", (2, 32, 12, 12), "float32")
    attrs = ir.ConvolutionBackwardWeights((1, 1), (0, 0, 0, 0), (1, 1), groups)
    shape = (32, 16, 3, 3) if groups == 1 else (groups, 32 // groups, 16 // groups, 3, 3)
    b.step("gradient", attrs, shape, [("src", x), ("gradient", grad)])
    return b.finish()


def facts(program: ir.Program, implementation: str, layout: str = LAST) -> StepFacts:
    (step,) = program.steps
    return StepFacts(program, step, in_layout(program, step, layout), info(implementation))


def in_groups(implementation: str, rate: float) -> MachineRates:
    """A machine on which a kernel was measured; AVX2 has 240 GFLOP/s."""
    return replace(rates(PEAK), kernels=(KernelRate(f"{implementation} in groups", rate),))


def operations(
    program: ir.Program, implementation: str, layout: str = LAST, machine: MachineRates = MACHINE
) -> float:
    """Operations that the peak allows in the time that a step computes."""
    return computing_us(facts(program, implementation, layout), machine) * PEAK * 1e3


@pytest.mark.parametrize(
    "implementation",
    [
        "grouped:avx512_core",
        "grouped:avx2",
        "jit:avx512_core",
        "jit:avx2",
        "brgconv:avx512_core",
        "brgconv:avx2",
    ],
)
@pytest.mark.parametrize("rate", [70.0, 200.0])
def test_kernels_that_were_measured_take_what_they_took_then(implementation: str, rate: float) -> None:
    """Sixteen channels and a window of 3x3, as they are measured; AVX2 has 240 GFLOP/s."""
    program = convolution(6, 16, 16)
    measured = KernelRate(f"{implementation} in groups", rate)
    machine = replace(rates(PEAK), kernels=(measured, KernelRate("other in groups", 1.0)))
    taken_us = 2.0 * 2 * 14 * 14 * 6 * 16 * 16 * 9 / rate / 1e3
    assert computing_us(facts(program, implementation), machine) == pytest.approx(taken_us)


@pytest.mark.parametrize("family", ["grouped", "jit"])
@pytest.mark.parametrize("instruction_set", ["avx512_core", "avx2"])
@pytest.mark.parametrize("rate", [70.0, 110.0])
def test_kernels_that_are_twice_as_fast_take_half_of_the_time_in_other_groups(
    family: str, instruction_set: str, rate: float
) -> None:
    wide, name = convolution(3, 24, 24), f"{family}:{instruction_set}"
    slow, fast = (operations(wide, name, machine=in_groups(name, factor * rate)) for factor in (1, 2))
    assert slow / fast == pytest.approx(2.0)


def test_products_of_matrices_wait_less_where_groups_are_wide() -> None:
    """They reach 1.1 of the peak without groups; what is missing by 16 channels counts half by 32."""
    share, rate, name = 1.1, 100.0, "brgconv:avx512_core"
    for channels in (16, 32, 64):
        taken = operations(convolution(3, channels, channels), name, machine=in_groups(name, rate))
        slower = 1 / share + (PEAK / rate - 1 / share) * 16 / channels
        assert taken == pytest.approx(2.0 * 2 * 14 * 14 * 3 * channels * channels * 9 * slower)


@pytest.mark.parametrize("implementation", ["grouped:avx512_core", "jit:avx512_core"])
def test_measured_kernels_take_as_long_where_narrow_vectors_multiply_faster(implementation: str) -> None:
    program = convolution(6, 16, 16)
    machine = replace(rates(PEAK, narrow=1.5), kernels=(KernelRate(f"{implementation} in groups", 70.0),))
    taken_us = 2.0 * 2 * 14 * 14 * 6 * 16 * 16 * 9 / 70.0 / 1e3
    assert computing_us(facts(program, implementation), machine) == pytest.approx(taken_us)


def test_oneDNNs_kernels_reach_no_more_in_groups_than_without() -> None:
    program = convolution(6, 16, 16)
    seconds = [
        computing_us(
            facts(program, "jit:avx2"),
            replace(rates(PEAK), kernels=(KernelRate("jit:avx2 in groups", rate),)),
        )
        for rate in (240.0, 300.0)
    ]
    assert seconds[0] == seconds[1]


def test_which_kernels_have_a_rate_in_groups() -> None:
    measured = ("jit:avx512_core", "jit:avx2", "brgconv:avx512_core", "brgconv:avx2", "grouped:avx2")
    others = ("jit:sse41", "brgconv_1x1:avx2", "x64:gemm:jit", "ref:any")
    for name in measured:
        assert rate_in_groups(implementation_named(name)) == f"{name} in groups"
    assert not any(rate_in_groups(implementation_named(name)) for name in others)


@pytest.mark.parametrize(
    ("implementation", "outputs", "together", "channels"),
    [
        # Groups that share a vector, and the channels that are computed then: whole vectors.
        ("grouped:avx512_core", 4, 4, 16),
        ("grouped:avx512_core", 8, 2, 16),
        ("grouped:avx512_core", 5, 3, 16),
        ("grouped:avx512_core", 16, 1, 16),
        ("grouped:avx512_core", 24, 1, 32),
        ("grouped:avx2", 4, 2, 8),
        ("grouped:avx2", 8, 1, 8),
        ("grouped:avx2", 12, 1, 16),
        ("grouped:sse41", 2, 2, 4),
        ("grouped:sse41", 6, 1, 8),
    ],
)
@pytest.mark.parametrize("inputs", [3, 8])
def test_groups_fill_vectors_or_share_one(
    implementation: str, outputs: int, together: int, channels: int, inputs: int
) -> None:
    groups = 12
    sums = 2 * inputs * channels * 9 / 0.9
    expected = 2 * 14 * 14 * (groups / together) * (sums + 2200)
    # Narrow vectors are as many in a second as the machine's rate for them says.
    wide, own = PEAK, rates(PEAK).gflops("float32", info(implementation).instruction_set)
    assert (own == wide) == implementation.endswith("avx512_core")
    found = operations(convolution(groups, outputs, inputs), implementation)
    assert found == pytest.approx(expected * wide / own)


def test_the_window_counts_and_the_image() -> None:
    for kernel, size in ((1, 7), (5, 9)):
        expected = 2 * size * size * 3 * (2 * 4 * 16 * kernel**2 / 0.9 + 2200)
        found = operations(convolution(12, 4, 4, size, kernel), "grouped:avx512_core")
        assert found == pytest.approx(expected)


def test_what_narrow_groups_reach_besides() -> None:
    given = facts(convolution(8, 4, 4), "grouped:avx512_core")
    assert (shown_share(given), weights_passes(given), hides(given)) == (0.5, 1.1, True)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    ("implementation", "layout", "share", "shown"),
    [
        ("jit:avx512_core", "aBcd16b", 0.85, 1.2),
        ("jit:avx512_core", LAST, 0.8, 1.2),
        ("jit_1x1:avx512_core", "aBcd16b", 0.9, 0.4),
        ("jit_1x1:avx512_core", LAST, 0.7, 0.9),
        ("x64:gemm:jit", LAST, 0.3, 1.0),
        ("other:avx512_core", LAST, 0.8, 1.0),
    ],
)
def test_gradients_of_weights_have_as_many_products_as_the_convolution(
    groups: int, implementation: str, layout: str, share: float, shown: float
) -> None:
    """By the layout of the image, since filters have none in blocks."""
    program = gradient(groups)
    given = facts(program, implementation, layout)
    expected = 2 * (2 * 32 * 12 * 12) * (16 // groups * 9) / share
    assert operations(program, implementation, layout) == pytest.approx(expected)
    assert shown_share(given) == shown and hides(given)
    assert weights_passes(given) == 1.0


def test_depthwise_kernels_of_narrow_vectors_load_more_often() -> None:
    program = convolution(16, 1, 1)
    wide, narrow = (shown_share(facts(program, f"jit_dw:{name}")) for name in ("avx512_core", "avx2"))
    assert wide == narrow == 0.75
    assert not hides(facts(program, "jit_dw:avx2"))
    machine = rates(PEAK, narrow=1.0)
    times = [
        computing_us(facts(program, f"jit_dw:{name}"), machine) for name in ("avx512_core", "avx2", "sse41")
    ]
    assert times[1] / times[0] == pytest.approx(1 / 0.7)


def test_pools_backward_compute_once_for_each_place_of_a_window() -> None:
    b = ProgramBuilder("one")
    x, grad = b.port("input", "x", (2, 16, 14, 14), "float32"), b.port("input", "g", (2, 16, 7, 7), "float32")
    attrs = ir.PoolingBackward("max", (3, 2), (2, 2), (1, 0), (1, 1))
    b.step("pool", attrs, (2, 16, 14, 14), [("src", x), ("gradient", grad)])
    assert operations(b.finish(), "jit:avx512_core") == pytest.approx(2 * 16 * 7 * 7 * 6 * 24.0)


@pytest.mark.parametrize(
    ("algorithm", "each"), [("tanh", 30.0), ("exp", 30.0), ("relu", 0.0), ("round", 0.0)]
)
def test_functions_behind_a_step_count_too(algorithm: str, each: float) -> None:
    program = convolution(12, 4, 4)
    (step,) = program.steps
    behind = replace(step, post_ops=(ir.EltwisePostOp(algorithm, 0.0, 0.0),))
    more = operations(replace(program, steps=(behind,)), "grouped:avx512_core")
    assert more - operations(program, "grouped:avx512_core") == pytest.approx(2 * 48 * 14 * 14 * each, abs=1)


def test_a_matrix_product_is_called_for_each_group_of_each_image() -> None:
    """17,000 cycles of 32 operations of AVX2, which has half of the peak: 240 GFLOP/s on both threads."""
    machine = rates(PEAK)
    few, many = (computing_us(facts(convolution(n, 2, 1), "x64:gemm:jit"), machine) for n in (8, 384))
    assert many - few > 0.99 * 2 * (384 - 8) * 17_000 * 32 / 240e3


@pytest.mark.parametrize("implementation", ["jit:avx512_core", "grouped:avx512_core"])
def test_parts_of_pixels_beyond_the_last_cache_are_waited_for(implementation: str) -> None:
    """Images of 2 x 96 x 112 x 112, beyond a quarter of the cache, at 40 GB/s; blocks scatter nothing."""
    program, machine = convolution(6, 16, 16, size=112), rates(PEAK, cache_bytes=4 << 20)
    last, blocks = (facts(program, implementation, layout) for layout in (LAST, "aBcd16b"))
    waiting = 3.0 * (2 * 2 * 96 * 112 * 112 * 4 - (1 << 20)) / 40e3
    assert scattered_us(last, machine) == pytest.approx(waiting)
    assert scattered_us(blocks, machine) == 0.0
    larger = replace(machine, levels=rates(PEAK, cache_bytes=1 << 30).levels)
    assert scattered_us(last, larger) == 0.0
    without = cost(last, larger) - cost(blocks, larger)
    assert cost(last, machine) - cost(blocks, machine) > without + 0.9 * waiting


@pytest.mark.parametrize(
    ("inputs", "share"), [(8, 1.0), (16, 1.0), (32, 0.5), (48, 1 / 3), (64, 0.0), (96, 0.0)]
)
def test_parts_of_more_lines_are_fetched_ahead(inputs: int, share: float) -> None:
    program, machine = convolution(2, inputs, inputs, size=112), rates(PEAK)
    far = 2 * 2 * 2 * inputs * 112 * 112 * 4 - (1 << 19)
    assert scattered_us(facts(program, "jit:avx512_core"), machine) == pytest.approx(share * 3.0 * far / 40e3)


@pytest.mark.parametrize(("groups", "outputs", "inputs"), [(1, 96, 96), (96, 1, 1)])
def test_whole_pixels_are_not_waited_for(groups: int, outputs: int, inputs: int) -> None:
    program = convolution(groups, outputs, inputs, size=112)
    assert scattered_us(facts(program, "jit:avx512_core"), rates(PEAK)) == 0.0
