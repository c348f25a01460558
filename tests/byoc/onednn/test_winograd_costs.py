"""Costs of Winograd convolutions by hand: products or filters, whichever is slower, and patches."""

from __future__ import annotations

import numpy as np
import pytest
from costs_by_hand import info, model

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder

GFLOPS, GBYTES = 100.0, 10.0


def parts(elements: int, tiles: int, rows: int, columns: int) -> tuple[float, float, float]:
    """Microseconds of the products at 0.93 of the peak, of reading filters, of patches in caches."""
    products = 2 * elements * tiles * rows * columns / (GFLOPS * 1e3 * 0.93)
    filters = 4 * elements * rows * columns / (GBYTES * 1e3)
    patches = 4 * elements * tiles * (rows + columns) / (2 * GBYTES * 1e3)
    return products, filters, patches


def winograd_us(
    algorithm: ir.ConvolutionAlgorithm, inputs: int, dst: tuple[int, ...], kernel: int = 3, groups: int = 1
) -> float:
    """What the model gives a convolution."""
    b = ProgramBuilder("p")
    x = b.port("input", "x", (dst[0], inputs, *dst[2:]), "float32")
    outputs = dst[1] // groups
    shape = (groups, outputs, inputs // groups, kernel, kernel)[groups == 1 :]
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups, algorithm)
    b.step("conv", attrs, dst, [("src", x), ("weights", b.constant(np.zeros(shape, np.float32)))])
    program = b.finish()
    layouts = ("acdb", "abcde"[: len(shape)], "acdb")
    by = model(gflops=GFLOPS, gbytes=GBYTES, cache_bytes=0)
    return by(program, program.steps[0], layouts, info(algorithm))


@pytest.mark.parametrize(
    ("algorithm", "filters", "groups", "elements", "size"),
    [
        ("winograd_f2", 3, 1, 16, 2),
        ("winograd_f4", 3, 1, 36, 4),
        ("winograd_f2", 5, 1, 36, 2),
        ("winograd_f4", 3, 2, 36, 4),
    ],
)
@pytest.mark.parametrize("extent", [7, 56])
def test_by_hand(algorithm, filters, groups, elements, size, extent) -> None:
    """64 channels in and 96 out, as many of each in every group."""
    tiles = 3 * (-(-extent // size)) ** 2
    rows, columns = 64 // groups, 96 // groups
    products, reading, patches = parts(groups * elements, tiles, rows, columns)
    assert (reading > products) == (tiles < 20)
    cost = winograd_us(algorithm, 64, (3, 96, extent, extent), filters, groups)
    assert cost == pytest.approx(max(products, reading) + patches)


def test_channels_come_in_sixteens() -> None:
    at = {n: winograd_us("winograd_f4", n, (1, 32, 28, 28)) for n in (3, 16, 17, 32)}
    assert at[3] == at[16] < at[17] == at[32]
