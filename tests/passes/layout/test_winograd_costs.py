"""Costs of Winograd convolutions by hand: products or filters, whichever is slower, and patches."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.layout.costs import Machine, ModelCost
from tvm_mxplan.passes.layout.winograd_costs import winograd_cost

GFLOPS, GBYTES = 100.0, 10.0


def parts(elements: int, tiles: int, rows: int, columns: int) -> tuple[float, float, float]:
    """Microseconds of the products at 0.93 of the peak, of reading filters, of patches in caches."""
    products = 2 * elements * tiles * rows * columns / (GFLOPS * 1e3 * 0.93)
    filters = 4 * elements * rows * columns / (GBYTES * 1e3)
    patches = 4 * elements * tiles * (rows + columns) / (2 * GBYTES * 1e3)
    return products, filters, patches


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
    cost = winograd_cost(
        algorithm, 64, (3, 96, extent, extent), GFLOPS, GBYTES, filter_size=filters, groups=groups
    )
    assert cost == pytest.approx(max(products, reading) + patches)


def test_channels_come_in_sixteens() -> None:
    at = {n: winograd_cost("winograd_f4", n, (1, 32, 28, 28), GFLOPS, GBYTES) for n in (3, 16, 17, 32)}
    assert at[3] == at[16] < at[17] == at[32]


@pytest.mark.parametrize(("kernel", "groups"), [(3, 1), (5, 1), (3, 2)])
def test_the_model_asks_for_the_convolution_as_it_is(kernel: int, groups: int) -> None:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (1, 64, 28, 28), "float32")
    shape = (96, 64, kernel, kernel) if groups == 1 else (groups, 96 // groups, 64 // groups, kernel, kernel)
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups, "winograd_f2")
    weights = b.constant(np.zeros(shape, np.float32))
    b.step("conv", attrs, (1, 96, 28, 28), [("src", x), ("weights", weights)])
    program = b.finish()
    model = ModelCost(Machine(gflops=GFLOPS, gbytes_per_s=GBYTES))
    layouts = ("acdb", "abcde"[: len(shape)], "acdb")
    found = model(program, program.steps[0], layouts, StepInfo("winograd_f2", 0, 0, ""))
    assert found == pytest.approx(
        winograd_cost("winograd_f2", 64, (1, 96, 28, 28), GFLOPS, GBYTES, filter_size=kernel, groups=groups)
    )
