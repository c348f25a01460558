"""A batch's means and variances, where numbers are many and far from 0: within rounding of float64's."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCKED
from less_instructions import run_again
from program_builder import Builder, call
from single_steps import no_refusals as no_refusals

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir

MOMENTS = "moments"
SHAPES = [(4, 40, 64, 31), (4, 19, 64, 31), (2, 3, 64, 64), (2, 16, 3, 5), (300, 24, 1, 1), (1, 7, 1, 129)]


def built(shape: tuple[int, ...], layout: str) -> Builder:
    """A batch norm of an image in a layout, by the statistics that it finds."""
    channels = (shape[1],)
    b = Builder()
    src = b.reorder(b.input(shape), layout)
    dst = b.local(shape, layout)
    results = {"batch_mean": b.output(channels), "batch_variance": b.output(channels)}
    given = {"scale": b.input(channels), "shift": b.input(channels)}
    b.step(ir.BatchNormalizationTraining(1e-5), src=src, **given, dst=dst, **results)
    b.finish(dst)
    return b


def info(b: Builder) -> StepInfo:
    """The library's description of the batch norm."""
    program = b.build()
    (at,) = (i for i, s in enumerate(program.steps) if isinstance(s.attrs, ir.BatchNormalizationTraining))
    return library.describe(program).steps[at]


def statistics_of(x: np.ndarray, layout: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """The step's results on an image: normalised numbers, means, variances; and who made them."""
    channels = (x.shape[1],)
    b = built(x.shape, layout)
    mean, variance = np.empty(channels, "float32"), np.empty(channels, "float32")
    normal = np.empty(x.shape, "float32")
    module = b.module()
    ones, zeros = np.ones(channels, "float32"), np.zeros(channels, "float32")
    call(module, b.name, x, ones, zeros, mean, variance, normal)
    (specialization,) = library.stats(module)["specializations"]
    names = [str(step["implementation"]) for step in specialization["steps"]]
    return normal, mean, variance, " ".join(names)


@pytest.mark.parametrize("layout", ["abcd", "acdb", BLOCKED])
@pytest.mark.parametrize("shape", SHAPES)
def test_statistics_of_numbers_far_from_zero(shape: tuple[int, ...], layout: str) -> None:
    random = np.random.default_rng(3)
    near = random.uniform(0.5, 1.5, (1, shape[1], 1, 1))
    x = (near + 0.05 * random.standard_normal(shape)).astype("float32")
    normal, mean, variance, names = statistics_of(x, layout)
    assert MOMENTS in names
    wide = x.astype("float64")
    axes = (0, 2, 3)
    np.testing.assert_allclose(mean, wide.mean(axes), rtol=2e-7)
    np.testing.assert_allclose(variance, wide.var(axes), rtol=2e-6)
    rows = (1, shape[1], 1, 1)
    expected = (wide - wide.mean(axes).reshape(rows)) / np.sqrt(wide.var(axes).reshape(rows) + 1e-5)
    # A digit of x is 1 / 0.05 times as much of what is normalised.
    np.testing.assert_allclose(normal, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("layout", ["abcd", "acdb", BLOCKED])
@pytest.mark.parametrize("alone", [True, False], ids=["moments", "whole"])
def test_refused_they_leave_the_batch_norm_to_onednn(layout: str, alone: bool) -> None:
    first = info(built((2, 19, 6, 7), layout))
    assert first.implementation.startswith(MOMENTS + "+") and not first.error
    refused = MOMENTS if alone else first.implementation
    library.refuse(first.descriptor, refused, "wrong means")
    other = info(built((2, 19, 6, 7), layout))
    assert not other.error
    assert other.implementation and MOMENTS not in other.implementation
    assert [one.implementation for one in other.refused] == [refused]
    x = np.random.default_rng(5).standard_normal((2, 19, 6, 7)).astype("float32")
    normal, mean, variance, names = statistics_of(x, layout)
    assert MOMENTS not in names
    axes = (0, 2, 3)
    np.testing.assert_allclose(mean, x.mean(axes), rtol=0, atol=1e-6)
    np.testing.assert_allclose(variance, x.var(axes), rtol=1e-5)
    np.testing.assert_allclose(normal.mean(axes), 0, atol=1e-6)


def test_equal_numbers_have_no_variance() -> None:
    x = np.full((2, 17, 33, 31), 0.1, "float32")
    normal, mean, variance, names = statistics_of(x, "acdb")
    assert MOMENTS in names
    assert (mean == np.float32(0.1)).all() and (variance == 0).all() and (normal == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "far_from_zero or no_variance")
