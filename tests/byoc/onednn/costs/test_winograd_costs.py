"""Costs of Winograd convolutions: products, filters, patches, and what each of them goes with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.winograd import winograd_us
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.step_facts import StepFacts

FREE = replace(rates(gflops=1e9, gbytes=1e9), fork_us=0.0)
"""A machine on which nothing takes time."""
COMPUTING = replace(FREE, compute=rates(gflops=100.0).compute)
READING = replace(FREE, levels=(FREE.levels[0], replace(FREE.levels[1], read=10.0)))
CACHING = replace(FREE, levels=(replace(FREE.levels[0], copied=10.0), FREE.levels[1]))


def winograd(
    machine: MachineRates,
    algorithm: ir.ConvolutionAlgorithm,
    inputs: int,
    dst: tuple[int, ...],
    kernel: int = 3,
    groups: int = 1,
    varying: bool = False,
) -> float:
    """The model's time for a convolution; ``varying``: its filters are an input."""
    b = ProgramBuilder("p")
    x = b.port("input", "x", (dst[0], inputs, *dst[2:]), "float32")
    outputs = dst[1] // groups
    shape = (groups, outputs, inputs // groups, kernel, kernel)[groups == 1 :]
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups, algorithm)
    filters = b.port("input", "w", shape, "float32") if varying else b.constant(np.zeros(shape, np.float32))
    b.step("conv", attrs, dst, [("src", x), ("weights", filters)])
    program = b.finish()
    layouts = ("acdb", "abcde"[: len(shape)], "acdb")
    facts = StepFacts(program, program.steps[0], layouts, info(algorithm))
    return winograd_us(facts, attrs, machine, 0.0)


@pytest.mark.parametrize(
    ("algorithm", "kernel", "groups", "elements", "size"),
    [
        ("winograd_f2", 3, 1, 16, 2),
        ("winograd_f4", 3, 1, 36, 4),
        ("winograd_f2", 5, 1, 36, 2),
        ("winograd_f4", 3, 2, 36, 4),
    ],
)
@pytest.mark.parametrize("extent", [7, 56])
def test_filters_are_read_once_and_products_made_for_each_tile(
    algorithm, kernel, groups, elements, size, extent
) -> None:
    """64 channels in and 96 out, as many of each in every group."""
    tiles = 3 * (-(-extent // size)) ** 2
    rows, columns = 64 // groups, 96 // groups
    asked = algorithm, 64, (3, 96, extent, extent), kernel, groups
    filters = 4 * groups * elements * rows * columns / 10e3
    assert winograd(READING, *asked) == pytest.approx(filters, rel=1e-3)
    products = 2 * groups * elements * tiles * rows * columns / 100e3
    assert products < winograd(COMPUTING, *asked) < 1.7 * products
    patches = 4 * groups * elements * tiles * (rows + columns) / 10e3
    assert 2 * patches < winograd(CACHING, *asked) < 8 * patches


def test_filters_that_vary_are_transformed_in_each_call() -> None:
    """In time that goes with their number alone, whatever the images."""
    asked = "winograd_f4", 64
    more = {}
    for outputs, extent in ((96, 7), (96, 56), (192, 56)):
        dst = (3, outputs, extent, extent)
        constant, varying = (winograd(READING, *asked, dst, varying=each) for each in (False, True))
        more[outputs, extent] = varying - constant
    assert more[96, 7] == pytest.approx(more[96, 56], rel=1e-3)
    assert more[192, 56] == pytest.approx(2 * more[96, 56], rel=1e-3)
    assert more[96, 56] > 4 * 36 * 64 * 96 / 10e3


def test_products_of_few_columns_reach_less() -> None:
    narrow, wide = (winograd(COMPUTING, "winograd_f4", 128, (1, n, 56, 56)) / n for n in (32, 512))
    assert narrow > 1.1 * wide


def test_channels_come_in_sixteens() -> None:
    at = {n: winograd(COMPUTING, "winograd_f4", n, (1, 32, 28, 28)) for n in (3, 16, 17, 32)}
    assert at[3] == at[16] < at[17] == at[32]


def test_beginning_the_products_takes_a_while() -> None:
    """So that small images are left to the direct sum."""
    waking = replace(FREE, fork_us=2.0)
    one, many = (winograd(waking, "winograd_f4", 64, (1, 64, 7, 7), groups=groups) for groups in (1, 4))
    assert 10 < one < many
    slower = replace(FREE, fork_us=4.0)
    assert winograd(slower, "winograd_f4", 64, (1, 64, 7, 7)) == pytest.approx(2 * one)


@pytest.mark.parametrize("machine", [COMPUTING, READING, CACHING])
def test_larger_filters_take_the_patches_of_larger_tiles(machine: MachineRates) -> None:
    """F(2x2,5x5) has the patches of F(4x4,3x3) for a quarter of the pixels; groups take the sum of theirs."""
    five = winograd(machine, "winograd_f2", 64, (1, 64, 28, 28), kernel=5)
    assert five == pytest.approx(winograd(machine, "winograd_f4", 64, (1, 64, 56, 56)))
    one = winograd(machine, "winograd_f4", 24, (1, 40, 28, 28))
    assert winograd(machine, "winograd_f4", 72, (1, 120, 28, 28), groups=3) == pytest.approx(3 * one)
