"""Costs of convolutions where no vectors are wider than AVX2's, beside those where some are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.kernels import computing_us
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.byoc.onednn.costs.vectors import has_narrow_vectors
from tvm_mxplan.byoc.onednn.costs.winograd import winograd_us
from tvm_mxplan.core.machine import Compute, KernelRate, MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.passes.layout.candidates import in_layout

PEAK = 150.0
SETS = (
    Compute("float32", "avx512", PEAK),
    Compute("float32", "avx2", PEAK),
    Compute("float32", "sse41", PEAK / 3),
)
WIDE, NARROW = (replace(rates(PEAK), compute=SETS[first:]) for first in (0, 1))
LAST, BLOCKED = "acdb", "aBcd8b"


def facts(
    kernel: int,
    implementation: str,
    layout: str = LAST,
    groups: int = 1,
    algorithm: ir.ConvolutionAlgorithm = "direct",
    channels: int = 64,
    dtype: str = "float32",
) -> StepFacts:
    """A convolution of 14x14 pixels of a type, whose result has as many channels as its source."""
    b = ProgramBuilder("one")
    image, each = (1, channels, 14, 14), channels // groups
    shape = (groups, each, each, kernel, kernel)[groups == 1 :]
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups, algorithm)
    operands = [
        ("src", b.port("input", "x", image, dtype)),
        ("weights", b.constant(np.zeros(shape, "f4"))),
    ]
    b.step("conv", attrs, image, operands)
    program = b.finish()
    (step,) = program.steps
    return StepFacts(program, step, in_layout(program, step, layout), info(implementation))


def operations(found: StepFacts, machine: MachineRates) -> float:
    return computing_us(found, machine) * PEAK * 1e3


@pytest.mark.parametrize(
    ("kernel", "family", "layout", "groups", "share"),
    [
        (1, "jit_1x1", BLOCKED, 1, 1.0),
        (1, "brgconv_1x1", LAST, 1, 0.8),
        (3, "brgconv", LAST, 1, 0.8),
        (3, "jit", BLOCKED, 1, 0.75),
        (3, "jit_dw", BLOCKED, 64, 1.0),
        (3, "brdgmm_dw", LAST, 64, 0.65),
    ],
)
def test_families_reach_a_share_there(
    kernel: int, family: str, layout: str, groups: int, share: float
) -> None:
    found = facts(kernel, f"{family}:avx2", layout, groups)
    assert operations(found, WIDE) / operations(found, NARROW) == pytest.approx(share)


def test_kernels_that_were_measured_have_no_share() -> None:
    found = facts(3, "brgconv:avx2", groups=4)
    machines = [
        replace(machine, kernels=(KernelRate("brgconv:avx2 in groups", 60.0),)) for machine in (WIDE, NARROW)
    ]
    taken = [operations(found, machine) for machine in machines]
    assert taken[0] == pytest.approx(taken[1])


@pytest.mark.parametrize(
    ("implementation", "dtype"), [("jit:sse41", "float32"), ("integers_1x1:avx2_words", "uint8")]
)
def test_shares_are_those_of_code_for_avx2_in_float32(implementation: str, dtype: str) -> None:
    """Integers have shares of their own of what AVX-512's kernels take."""
    found = facts(1, implementation, dtype=dtype)
    assert cost(found, WIDE) == pytest.approx(cost(found, NARROW))


def test_blocks_pay_for_pointwise_convolutions_there_alone() -> None:
    last, blocked = (
        facts(1, "brgconv_1x1:avx2", channels=512),
        facts(1, "jit_1x1:avx2", BLOCKED, channels=512),
    )
    assert cost(blocked, NARROW) < cost(last, NARROW)
    assert cost(blocked, WIDE) > cost(last, WIDE)


def test_products_of_winograd_take_twice_as_long_there() -> None:
    found = facts(3, "winograd_f4", algorithm="winograd_f4")
    attrs = found.step.attrs
    assert isinstance(attrs, ir.Convolution)
    products = 2.0 * 36 * 16 * 64 * 64 / (PEAK * 64 / 68) / 1e3
    more = winograd_us(found, attrs, NARROW, 0.0) - winograd_us(found, attrs, WIDE, 0.0)
    assert more == pytest.approx(products)


def test_which_machines_have_narrow_vectors() -> None:
    assert has_narrow_vectors(NARROW)
    assert not has_narrow_vectors(WIDE)
